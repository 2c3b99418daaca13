"""Processes that end with another one, however that ends."""

from __future__ import annotations

import fcntl
import os
import signal


def ends_with(lifeline: int, group: int) -> None:
    """Have the kernel kill a group of processes, of which one has the pipe ``lifeline`` open, when
    nobody holds the other end of the pipe any more.
    """
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -group)
    if (which := getattr(fcntl, "F_SETSIG", None)) is not None:
        fcntl.fcntl(lifeline, which, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
