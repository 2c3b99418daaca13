"""A directory of this host that can be made again: it stays while somebody has it, and says by its
lock when that was last.

Who has it holds a shared lock, or one alone; who removes it needs one alone, puts the directory
aside in one step, and deletes it there. So half of one is never found, and nobody gets one that is
being deleted: a lock that was waited for counts only if it is still the directory's.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

# ``flock`` waits for ever or not at all: so a lock is looked at again and again.
_LOOK_SECONDS = 0.02


class Busy(Exception):
    """Somebody has the directory in a way that does not go with another's."""


@dataclass(frozen=True)
class Kept:
    """The directory ``place``, and the file that is locked by who has it: in it, or beside it."""

    place: Path
    lock: Path

    @contextmanager
    def held(self, *, alone: bool = False, seconds: float = 0.0, said: str = "") -> Iterator[None]:
        """Have the directory, which may not be there yet, with others or alone; it counts as used
        then.

        Raises:
            Busy: with the words ``said``, if somebody has it in another way for so many seconds.
        """
        file = self._locked(fcntl.LOCK_EX if alone else fcntl.LOCK_SH, seconds, said)
        try:
            # At both ends: one that is held for long counts as used when it is let go.
            os.utime(file)
            yield
            os.utime(file)
        finally:
            os.close(file)

    def used(self) -> int:
        """When somebody had it last, in nanoseconds of this host's clock; 0 if nobody knows."""
        try:
            return self.lock.stat().st_mtime_ns
        except OSError:
            return 0

    def touch(self) -> None:
        """Count as used now, if it is there."""
        with suppress(OSError):
            os.utime(self.lock)

    def put_aside(self, aside: Path, unused_since: int | None = None) -> Path | None:
        """Move the directory out of its place, below ``aside`` on the same file system, and return
        where it is to be deleted; None if it was used after ``unused_since``, or is not there.

        Raises:
            Busy: if somebody has it.
        """
        if not self.place.is_dir() and not self.lock.exists():
            return None
        # Before the lock is taken: where it has no file, that makes one, as if it were used now.
        before = self.used()
        file = self._locked(fcntl.LOCK_EX, 0.0, f"{self.place} is in use")
        try:
            if unused_since is not None and before and self.used() > unused_since:
                return None
            aside.mkdir(parents=True, exist_ok=True, mode=0o700)
            put = Path(tempfile.mkdtemp(dir=aside))
            # Onto the empty directory that was just made: one step, so half of it is never found.
            with suppress(FileNotFoundError):
                self.place.rename(put)
            if self.lock.parent != self.place:
                # One in the directory went with it: what has its name by now is another's.
                self.lock.unlink()
            return put
        finally:
            os.close(file)

    def _locked(self, how: int, seconds: float, said: str) -> int:
        """A descriptor of the lock, which is the directory's."""
        end = time.monotonic() + seconds
        while True:
            file = self._opened()
            try:
                fcntl.flock(file, how | fcntl.LOCK_NB)
                # While the lock was waited for, the directory may have been put aside, and another
                # be there.
                if self._is_at_its_place(file):
                    return file
            except BlockingIOError:
                if time.monotonic() >= end:
                    os.close(file)
                    raise Busy(said) from None
                time.sleep(_LOOK_SECONDS)
            except BaseException:
                os.close(file)
                raise
            os.close(file)

    def _opened(self) -> int:
        top = self.lock.parent
        while True:
            # The directory may be put aside between the two, or where the first has found it there
            # and looks whether it is one.
            with suppress(FileNotFoundError):
                try:
                    top.mkdir(parents=True, exist_ok=True, mode=0o700)
                except FileExistsError:
                    if top.is_file() or top.is_symlink():
                        raise
                    continue
                return os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _is_at_its_place(self, file: int) -> bool:
        own = os.fstat(file)
        try:
            there = self.lock.stat()
        except OSError:
            return False
        return (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino)


def put_in_place(made: Path, place: Path) -> None:
    """Give what is whole its name, by which others take it for whole, after a power cut too.

    Raises:
        OSError: if the host refuses, as where something is that cannot be replaced.
    """
    # Else the name may be on the disk, and what it names not yet.
    os.sync()
    made.rename(place)
