"""Who uses the embedded server: one file for each use, locked by the process for as long as it
lives.

The operating system gives a lock back when its process ends, ``kill -9`` included, so a count of
locked files is a count of live users. Everything here happens while ``start.lock`` is held: between
opening a file and locking it, a user would look dead.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from runtime.base.home import Home


@dataclass(frozen=True)
class ServerUse:
    """One use of the server by this process, from ``begin_use`` to ``end``."""

    path: Path
    descriptor: int

    def end(self) -> None:
        """This use is over."""
        self.path.unlink(missing_ok=True)
        os.close(self.descriptor)


def begin_use(home: Home) -> ServerUse:
    """Registers a use of the server by this process."""
    home.users.mkdir(exist_ok=True, mode=0o700)
    path = home.users / f"{os.getpid()}-{secrets.token_hex(4)}"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return ServerUse(path, descriptor)


def live_users(home: Home) -> tuple[int, ...]:
    """The process ids of all live users, in order; files that dead ones left are removed."""
    pids: set[int] = set()
    for path in home.users.glob("*-*"):
        if locked(path):
            pids.add(int(path.name.partition("-")[0]))
        else:
            path.unlink(missing_ok=True)
    return tuple(sorted(pids))


def locked(path: Path) -> bool:
    """Whether some live process holds the lock on the file ``path``; a file that is not there is
    not locked.
    """
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        # Whether another has the lock, the system tells only to whoever tries to take it.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
