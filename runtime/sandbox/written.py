"""What a command has written to its directories, counted while it writes to them.

Directories are opened one in the other, and never by a path, which may be longer than the kernel
takes. One that its owner may not list is opened to him for as long as it is looked through.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

_ENTRY_BYTES = 1024
"""What an entry of a directory counts for, beside its blocks."""
_OPEN = 32
"""Directories that are open at a time: the deepest ones of a path."""
_TRIES = 3
"""How often a directory is opened to its owner that the command closes again."""
_SEEN = stat.S_IRUSR | stat.S_IXUSR
_FLAGS = os.O_DIRECTORY | os.O_CLOEXEC
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
"""A directory is not there any more, or something else is."""


class Hidden(Exception):
    """What is in a directory cannot be seen, try as one may."""


@dataclass
class _Level:
    """A directory on the way down, and the directories in it that were not looked through yet.

    ``modes`` are those that it had, and was given in their place.
    """

    descriptor: int
    identity: tuple[int, int]
    modes: tuple[int, int] | None = None
    below: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, descriptor: int) -> _Level:
        """That of an open directory."""
        status = os.fstat(descriptor)
        return cls(descriptor, (status.st_dev, status.st_ino))

    def open_up(self) -> None:
        """Let its owner look through it.

        Raises:
            PermissionError: if it is somebody else's.
        """
        before = stat.S_IMODE(os.fstat(self.descriptor).st_mode)
        if before & _SEEN != _SEEN:
            self.modes = before, before | _SEEN
            # For one that was not opened to be read, the kernel takes this way alone.
            os.chmod(f"/proc/self/fd/{self.descriptor}", before | _SEEN)  # noqa: PTH101 no path

    def close(self) -> None:
        """Leave it with the mode that it had, or that the command has given it meanwhile."""
        if self.descriptor < 0:
            return
        with contextlib.suppress(OSError):
            now = stat.S_IMODE(os.fstat(self.descriptor).st_mode)
            if self.modes is not None and now == self.modes[1]:
                os.fchmod(self.descriptor, self.modes[0])
        os.close(self.descriptor)


def written_since(top: Path, since: float) -> int:
    """Bytes on disk of what was changed below ``top`` since the time ``since``.

    Raises:
        Hidden: if not all can be seen.
    """
    total = 0
    way: list[_Level] = []
    try:
        name, parent = os.fspath(top), None
        while True:
            if (level := _entered(name, parent)) is not None:
                way.append(level)
                total += _looked_through(level, since)
                if len(way) > _OPEN and (far := way[-_OPEN - 1]).descriptor >= 0:
                    os.close(far.descriptor)
                    far.descriptor = -1
            while way and not way[-1].below:
                if len(way) > 1 and way[-2].descriptor < 0:
                    _reopen(way[-2], way[-1].descriptor)
                way.pop().close()
            if not way:
                return total
            parent = way[-1]
            name = parent.below.pop()
    except PermissionError as error:
        raise Hidden(top) from error
    finally:
        for level in way:
            level.close()


def _entered(name: str, parent: _Level | None) -> _Level | None:
    """A directory; None if it is gone."""
    # A link is none of the command's directories; the top's own name may be one.
    above, follow = (None, 0) if parent is None else (parent.descriptor, os.O_NOFOLLOW)
    modes = None
    for _ in range(_TRIES):
        try:
            level = _Level.of(os.open(name, os.O_RDONLY | _FLAGS | follow, dir_fd=above))
        except PermissionError:
            if parent is not None:
                parent.open_up()
            modes = _opened_up(name, above, follow) or modes
        except OSError as error:
            if error.errno in _GONE:
                return None
            raise
        else:
            level.modes = modes
            return level
    raise Hidden(name)


def _opened_up(name: str, above: int | None, follow: int) -> tuple[int, int] | None:
    """The modes of a directory that its owner could not look through; None if it is gone.

    Raises:
        PermissionError: if it is somebody else's.
    """
    try:
        level = _Level.of(os.open(name, os.O_PATH | _FLAGS | follow, dir_fd=above))
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise
    try:
        level.open_up()
        return level.modes
    finally:
        os.close(level.descriptor)


def _looked_through(level: _Level, since: float) -> int:
    """Bytes in a directory that were changed; those in it to go on with are noted."""
    for _ in range(_TRIES):
        total, level.below = 0, []
        try:
            with os.scandir(level.descriptor) as entries:
                for entry in entries:
                    status = _status(entry)
                    if status is None:
                        continue
                    if stat.S_ISDIR(status.st_mode):
                        level.below.append(entry.name)
                    # Times of files are those of the kernel's last tick, a little behind the clock.
                    if status.st_ctime >= since - 1:
                        total += status.st_blocks * 512 + _ENTRY_BYTES
        except PermissionError:
            # It can be listed, but what is in it cannot be looked at.
            level.open_up()
        else:
            return total
    raise Hidden


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None


def _reopen(level: _Level, below: int) -> None:
    """Open a directory again from one that is in it.

    Raises:
        Hidden: if that has moved elsewhere meanwhile.
    """
    level.descriptor = os.open("..", os.O_RDONLY | _FLAGS, dir_fd=below)
    status = os.fstat(level.descriptor)
    if (status.st_dev, status.st_ino) != level.identity:
        # Somebody else's: its mode is not for us to change.
        level.modes = None
        raise Hidden
