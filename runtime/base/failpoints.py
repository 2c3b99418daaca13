"""Named places at which a test may kill the process, as ``kill -9`` would.

``HOLDFAST_FAILPOINT="name"`` or ``"name:3"`` kills at the first or third time that ``name`` is
passed. ``HOLDFAST_FAILPOINT_ONCE=PATH`` makes it happen once across restarts: the file is created
before the kill, and a process that finds it does nothing. Without the variable a fail point costs
one comparison. The environment is read when this module is imported, and by ``arm``. The idea is
from dbos-inc/dbos-transact-py.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path

_name = ""
_remaining = 0
_once: str | None = None
_lock = threading.Lock()


def arm(environment: Mapping[str, str]) -> None:
    """Arm the fail point that the environment names, and no other."""
    global _name, _remaining, _once
    _name, _, nth = environment.get("HOLDFAST_FAILPOINT", "").partition(":")
    _remaining = int(nth) if nth else 1
    _once = environment.get("HOLDFAST_FAILPOINT_ONCE")


arm(os.environ)


def failpoint(name: str) -> None:
    """Kill this process with SIGKILL if ``name`` is the armed fail point and its turn has come."""
    if not _name or name != _name:
        return
    _hit()


def _hit() -> None:
    global _remaining
    with _lock:
        _remaining -= 1
        if _remaining != 0 or not _claim():
            return
        os.kill(os.getpid(), signal.SIGKILL)
        # The signal is delivered when this thread is next scheduled; nothing after the fail point
        # may run.
        signal.pause()


def _claim() -> bool:
    """True if no earlier process died here; the claim is durable before the kill."""
    if _once is None:
        return True
    try:
        with Path(_once).open("x") as claim:
            os.fsync(claim.fileno())
    except FileExistsError:
        return False
    return True
