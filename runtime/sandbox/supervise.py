"""The parent of a command without a sandbox: ``supervise ORDER LIFELINE STATUS``, descriptors all.

It bounds the command, and ends all that the command started when that ends, or when the lifeline
closes, as it does when the worker is gone. Run as a plain file, with nothing but the standard
library.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import sys
from pathlib import Path
from typing import Any

_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Run the order."""
    order_fd, lifeline, status = map(int, sys.argv[1:4])
    with os.fdopen(order_fd, "rb") as file:
        order = json.load(file)
    if sys.platform == "linux":
        # What leaves its parent, and its process group, becomes a child of this process.
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    # Without a handler the signal is ignored, and nothing is written to wake the wait.
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    child = os.fork()
    if child == 0:
        # The command must not hold these: it could answer in its supervisor's place.
        for descriptor in (lifeline, status, woken, wake):
            os.close(descriptor)
        _become(order)
    code = _wait(child, lifeline, woken)
    _end_all(child)
    os.write(status, str(code).encode())


def _become(order: dict[str, Any]) -> None:
    """The command itself; does not return."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # Python ignores these, and what it starts would too.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        for kind, most in order["limits"]:
            hard = resource.getrlimit(kind)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(kind, (most, most))
        if order["group"] is not None:
            with contextlib.suppress(OSError):
                Path(order["group"]).write_text("0")
        os.chdir(order["directory"])
        os.execve(order["argv"][0], order["argv"], order["env"])
    finally:
        # Only reached where the command could not take this process's place.
        os.write(2, b"the command could not be started\n")
        os._exit(127)


def _wait(child: int, lifeline: int, woken: int) -> int:
    """The child's exit code, or that of a kill if the lifeline closed first."""
    while True:
        ready, _, _ = select.select([lifeline, woken], [], [])
        if lifeline in ready:
            return 128 + signal.SIGKILL
        os.read(woken, 4096)
        # One wake may stand for several children.
        while (ended := _reaped(os.WNOHANG)) is not None:
            if ended[0] == child:
                return ended[1]


def _end_all(child: int) -> None:
    """Kill the command's group and whoever is left, until nobody is."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    # Again until none is left: one may be started between the list and the kill.
    while True:
        for pid in _children():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if _reaped(0) is None:
            return


def _children() -> list[int]:
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    try:
        return [int(pid) for pid in path.read_text().split()]
    except OSError:
        return []


def _reaped(options: int) -> tuple[int, int] | None:
    """A child that ended and its exit code; None if there is none, or (WNOHANG) none yet."""
    try:
        pid, status = os.waitpid(-1, options)
    except ChildProcessError:
        return None
    if pid == 0:
        return None
    code = os.waitstatus_to_exitcode(status)
    return pid, code if code >= 0 else 128 - code


if __name__ == "__main__":
    main()
