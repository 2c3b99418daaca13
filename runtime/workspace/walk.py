"""The wall: from a path that a model wrote to a directory entry beneath the workspace's root,
without a race.

Every component is looked up in a directory that is held open, and no lookup follows a link. Links
are read and followed here, component by component, so a link that leads out is found before
anything behind it is touched, whoever changes the tree meanwhile. ``..`` never opens a parent: it
walks again from the root. A hard link to, or a mount of, something outside is part of the
workspace: whoever made it had that right.

Names that Monty or JSON cannot hold have an escaped form, ``%XX`` for each byte that is no UTF-8
and for a backslash (which Monty's paths turn into ``/``). A name is looked up as written first,
then unescaped.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from runtime.base.host_trouble import host_trouble
from runtime.base.os_values import workspace_path
from runtime.trees.places import MAX_LINKS, OUTSIDE, without_home
from runtime.trees.spellings import spellings

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
"""How a file is opened that may be anything by now: neither a link nor a pipe holds us up."""

LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
"""How a directory is opened whose names are wanted, or a lock on it."""

CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a file is made where nothing is."""

SPECIAL_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
"""What is neither a file nor a directory nor a link, by its bits."""

MAX_LOOKUPS = 4096
"""Directory lookups that one path may cost; a hostile chain of links and ``..`` ends here."""

GONE = "The workspace's own directory is missing"

# A directory that may be entered and not listed can be walked through only with O_PATH.
_SEARCH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NONBLOCK
_UNSPEAKABLE = re.compile(r"[\\\udc80-\udcff]")


@dataclass(frozen=True)
class Entry:
    """A directory entry inside the wall; ``directory`` is open only while the walk that found it
    is.

    ``name`` is the entry's raw name in ``directory`` (``"."`` for the root itself), ``status`` its
    ``lstat``, and ``place`` the names from the root to it, none of them a link except perhaps the
    last.
    """

    directory: int
    name: str
    status: os.stat_result
    place: tuple[str, ...]


class Absent(FileNotFoundError):
    """There is no such entry; ``place`` and ``rest`` tell how far the walk came."""

    def __init__(self, path: str, place: tuple[str, ...], rest: tuple[str, ...]) -> None:
        super().__init__(errno.ENOENT, os.strerror(errno.ENOENT), path)
        self.place = place
        self.rest = rest


@contextmanager
def entry_at(root: str, path: str, *, follow: bool = True) -> Iterator[Entry]:
    """The entry that ``path`` names beneath the host directory ``root``; a last link is followed if
    ``follow``.

    Raises:
        OSError: its subclass and text as Python's own, naming ``path`` and no host path.
        ValueError: for a path that no file can have (a NUL, a lone surrogate).
    """
    with naming(path):
        walk = _Walk(root, path)
        try:
            entry = walk.find(follow)
        except BaseException:
            walk.close()
            raise
    try:
        yield entry
    finally:
        walk.close()


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Any ``OSError`` inside names ``path`` as the model wrote it; trouble of the host itself
    passes unchanged.
    """
    try:
        yield
    except Absent:
        # It names the path already, and says how far the walk came.
        raise
    except OSError as error:
        if host_trouble(error):
            raise
        code = error.errno or errno.EIO
        raise OSError(code, error.strerror or os.strerror(code), path) from None


def escape_name(name: str) -> str:
    """A raw file name in the form that JSON and Monty can hold."""
    return _UNSPEAKABLE.sub(
        lambda match: "".join(f"%{byte:02X}" for byte in os.fsencode(match[0])), name
    )


class _Walk:
    """One walk: where it stands (``directory``, ``place``) and the components that are left
    (``todo``).
    """

    def __init__(self, root: str, path: str) -> None:
        self._root_path = root
        self._path = path
        self._links = 0
        self._lookups = 0
        self._place: list[str] = []
        self._todo = deque(_components(path))
        try:
            self._root = os.open(root, _SEARCH)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(errno.ENOENT, GONE, path) from None
        self._directory = self._root

    def close(self) -> None:
        """Close what the walk holds open."""
        self._stand_in(self._root)
        os.close(self._root)

    def find(self, follow: bool) -> Entry:
        """Walk to the end."""
        while self._todo:
            name = self._todo.popleft()
            if name == "..":
                self._leave()
            elif name != ".":
                entry = self._step(name, follow)
                if entry is not None:
                    return entry
        return Entry(self._directory, ".", os.fstat(self._directory), tuple(self._place))

    def _step(self, name: str, follow: bool) -> Entry | None:
        name, status = self._look_up(name)
        if stat.S_ISLNK(status.st_mode) and (self._todo or follow):
            self._follow(name)
            return None
        if not self._todo:
            return Entry(self._directory, name, status, (*self._place, name))
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), self._path)
        self._enter(name)
        return None

    def _look_up(self, name: str) -> tuple[str, os.stat_result]:
        self._count()
        for spelling in spellings(name):
            try:
                return spelling, os.stat(spelling, dir_fd=self._directory, follow_symlinks=False)
            except FileNotFoundError:
                continue
        raise Absent(self._path, tuple(self._place), (name, *self._todo))

    def _follow(self, name: str) -> None:
        self._links += 1
        if self._links > MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), self._path)
        target = os.readlink(name, dir_fd=self._directory)
        if target.startswith("/"):
            target = self._beneath_root(target)
            self._return_to(())
        # An empty component, as after a trailing slash, stands for "must be a directory", as "."
        # does.
        self._todo.extendleft(part or "." for part in reversed(target.split("/")))

    def _beneath_root(self, target: str) -> str:
        """An absolute link's target relative to the root, if its spelling starts with the root's
        own path.
        """
        # Whoever made the link may have written the root's path with links in it, or without.
        for base in dict.fromkeys(
            (str(Path(self._root_path).absolute()), os.path.realpath(self._root_path))
        ):
            if target == base or target.startswith(base.rstrip("/") + "/"):
                return target[len(base) :].lstrip("/") or "."
        raise PermissionError(errno.EACCES, OUTSIDE, self._path)

    def _leave(self) -> None:
        if not self._place:
            raise PermissionError(errno.EACCES, OUTSIDE, self._path)
        self._return_to(tuple(self._place[:-1]))

    def _return_to(self, place: tuple[str, ...]) -> None:
        self._stand_in(self._root)
        self._place.clear()
        for name in place:
            self._enter(name)

    def _enter(self, name: str) -> None:
        self._count()
        self._stand_in(os.open(name, _SEARCH | os.O_NOFOLLOW, dir_fd=self._directory))
        self._place.append(name)

    def _stand_in(self, directory: int) -> None:
        if self._directory not in (self._root, directory):
            os.close(self._directory)
        self._directory = directory

    def _count(self) -> None:
        self._lookups += 1
        if self._lookups > MAX_LOOKUPS:
            raise OSError(errno.ELOOP, "The path takes too many steps", self._path)


def _components(path: str) -> list[str]:
    """The components of a path as the model wrote it; ``~`` is the workspace's root."""
    if "\0" in path:
        raise ValueError("embedded null byte")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise ValueError(
            f"the path holds characters that no file name can have: {path!r}"
        ) from None
    if not path:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    inside = without_home(workspace_path(path))
    if inside.startswith("/"):
        raise PermissionError(errno.EACCES, OUTSIDE, path)
    return [part or "." for part in inside.split("/")]
