"""First processes of sandboxes whose bubblewrap is gone: ended, since nothing else ends them.

A first process sleeps until bubblewrap has told the kernel which users it has, and ties itself to
bubblewrap's life only then. If bubblewrap is killed before, as with a worker that is killed in that
moment, it sleeps for ever. It has run nothing.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from runtime.sandbox.bubblewrap import command_line

_PROC = Path("/proc")
_OURS = [os.fsencode(word) for word in command_line("", 0)]


def end_orphans() -> int:
    """End those of all workers of this host, as far as this user may; how many they were."""
    return sum(_ended(int(directory.name)) for directory in _PROC.glob("[0-9]*"))


def _ended(pid: int) -> bool:
    """Whether it was one, and is told to end."""
    # First what costs little: this is asked of every process of the host.
    if not _made_here(_words(pid)):
        return False
    with contextlib.suppress(OSError), contextlib.ExitStack() as held:
        process = os.pidfd_open(pid)
        held.callback(os.close, process)
        # Read again, now that its number is no other process's. One whose parent has the same
        # arguments was forked by it: bubblewrap lives.
        words = _words(pid)
        if _made_here(words) and _in_namespace(pid) and _words(_parent(pid)) != words:
            signal.pidfd_send_signal(process, signal.SIGKILL)
            return True
    return False


def _made_here(words: list[bytes]) -> bool:
    """Whether these are the arguments of a bubblewrap for a command, of whichever installation."""
    return words[1:2] == _OURS[1:2] and words[3:] == _OURS[3:]


def _words(pid: int) -> list[bytes]:
    """The arguments of a process; none if it has ended."""
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")[:-1]
    except OSError:
        return []


def _in_namespace(pid: int) -> bool:
    """Whether it has a number in a namespace below ours too: bubblewrap itself has not."""
    return len(_status(pid, b"NSpid")) > 1


def _parent(pid: int) -> int:
    return int(_status(pid, b"PPid")[0])


def _status(pid: int, field: bytes) -> list[bytes]:
    for line in (_PROC / str(pid) / "status").read_bytes().splitlines():
        name, _, values = line.partition(b":")
        if name == field:
            return values.split()
    return []
