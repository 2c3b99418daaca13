"""The workspace of a job: reading files inside a wall.

A job's statements name files by paths relative to one host directory. Every path is resolved strictly beneath it
(``runtime.workspace_walk``); only regular files are opened, never anything that could block or act when opened; and
every answer is bounded. What goes wrong is an ordinary Python exception that names the path as the model wrote it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from runtime.fingerprints import Identity
from runtime.interpreter.os_values import ScanEntry, StatResult, virtual_path
from runtime.workspace_scan import Child, Scan, ScanLimits, sorted_children
from runtime.workspace_walk import OUTSIDE, Absent, Entry, entry_at, escape_name, host_trouble, naming

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_LIST = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_DIRECTORY
_CHUNK = 64 * 1024
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True)
class Limits:
    """Bounds of single answers.

    ``read_bytes`` bounds what ``open(...).read()`` brings into a statement, and so into history; ``view_bytes`` the file
    behind a view, which stays outside; ``entries`` the names in one answer, ``visited`` those looked at for it, and
    ``listing_bytes`` their names together.
    """

    read_bytes: int = 256 * 1024
    view_bytes: int = 64 * 1024 * 1024
    entries: int = 20_000
    visited: int = 200_000
    listing_bytes: int = 1024 * 1024


@dataclass(frozen=True)
class Content:
    """A file's bytes as one read found them, and its identity before and after."""

    data: bytes
    before: Identity
    after: Identity


class Workspace:
    """The directory ``root`` of the host, seen from inside. Holds nothing open between calls; safe between threads.

    Paths are relative, ``/workspace/...``, or start with ``~`` for the root. Every method raises ``FileNotFoundError``,
    ``PermissionError`` (the path leads out, or names no regular file), ``IsADirectoryError``, ``NotADirectoryError``,
    ``OSError`` (a loop of links, a bound) or ``ValueError`` (no file can have that path), each naming the path as given.
    """

    def __init__(self, root: str, limits: Limits | None = None) -> None:
        self._root = root
        self._limits = limits or Limits()

    def read_bytes(self, path: str) -> bytes:
        """The whole content of a file of at most ``read_bytes``."""
        return self._read(path, self._limits.read_bytes, "use view(...) or a tool").data

    def read_text(self, path: str) -> str:
        """The content as UTF-8 text with universal newlines, as Python's ``open`` reads it.

        Raises:
            UnicodeDecodeError: if the bytes are not UTF-8.
        """
        data = self.read_bytes(path)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            reason = f"{error.reason} in {path!r}; open it in mode 'rb', or use view(...)"
            raise UnicodeDecodeError("utf-8", data, error.start, error.end, reason) from None
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def content(self, path: str) -> Content:
        """The whole content of a file of at most ``view_bytes``, from a single read."""
        return self._read(path, self._limits.view_bytes, "use a tool")

    def identity(self, path: str) -> Identity:
        """The identity of a regular file, without opening it."""
        with self._entry(path) as entry:
            _check_readable(entry.status, path)
            return Identity.of(entry.status)

    def exists(self, path: str) -> bool:
        """Whether ``path`` names anything inside; a broken or looping link does not."""
        return self._mode(path) is not None

    def is_file(self, path: str) -> bool:
        """Whether ``path`` is, or links to, a regular file."""
        return stat.S_ISREG(self._mode(path) or 0)

    def is_dir(self, path: str) -> bool:
        """Whether ``path`` is, or links to, a directory."""
        return stat.S_ISDIR(self._mode(path) or 0)

    def is_symlink(self, path: str) -> bool:
        """Whether ``path`` itself is a link, wherever it leads."""
        return stat.S_ISLNK(self._mode(path, follow=False) or 0)

    def stat(self, path: str) -> StatResult:
        """Mode, link count, size and modification time; what depends on the machine or on who read it is 0.

        Access and change time are the modification time, so that reading changes no answer.
        """
        with self._entry(path) as entry:
            status = entry.status
        moment = status.st_mtime
        return StatResult(status.st_mode, 0, 0, status.st_nlink, 0, 0, status.st_size, moment, moment, moment)

    def listdir(self, path: str) -> list[str]:
        """The names in a directory, sorted, in their escaped form."""
        limits = self._limits
        names = [escape_name(child.name) for child in self._children(path, limits.entries)]
        if sum(map(len, names)) > limits.listing_bytes:
            raise OSError(errno.EFBIG, "The names in the directory are too long together; use a tool", path)
        return names

    def scan(
        self,
        path: str,
        *,
        max_depth: int | None = None,
        follow_symlinks: bool = False,
        pattern: Sequence[str] | None = None,
        case_sensitive: bool | None = None,
    ) -> list[ScanEntry]:
        """The directory itself and what is beneath it, sorted in each directory, down to ``max_depth`` levels.

        ``pattern`` (glob parts relative to ``path``) leaves out entries that cannot match it, but no directories. A
        directory below that cannot be listed reads as empty, and a link that leads out is neither file nor directory.
        """
        limits = ScanLimits(self._limits.entries, self._limits.visited, self._limits.listing_bytes)
        mode, is_link = self._mode(path), self.is_symlink(path)
        if mode is None and not is_link:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        scan = Scan(path, limits, max_depth, follow_symlinks, pattern, case_sensitive)
        return scan.run(self._children, self._kind_of, mode or 0, is_link)

    def resolve(self, path: str) -> str:
        """The absolute path as the model knows it, with links inside resolved; what does not exist is kept as written."""
        try:
            with self._entry(path) as entry:
                place = entry.place
        except Absent as absent:
            place = _lexically(absent, path)
        return virtual_path("/".join(map(escape_name, place)))

    @contextmanager
    def _entry(self, path: str, *, follow: bool = True) -> Iterator[Entry]:
        with entry_at(self._root, path, follow=follow) as entry:
            yield entry

    def _mode(self, path: str, *, follow: bool = True) -> int | None:
        """The mode of what ``path`` names; ``None`` if there is nothing, as ``pathlib``'s predicates have it."""
        try:
            with self._entry(path, follow=follow) as entry:
                return entry.status.st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                return None
            raise

    def _kind_of(self, path: str) -> int:
        """The mode of what ``path`` names inside, 0 if that cannot be told."""
        try:
            return self._mode(path) or 0
        except OSError as error:
            if host_trouble(error):
                raise
            return 0

    def _children(self, path: str, bound: int) -> list[Child]:
        with self._entry(path) as entry, naming(path):
            directory = os.open(entry.name, _LIST, dir_fd=entry.directory)
            try:
                return sorted_children(directory, bound, path)
            finally:
                os.close(directory)

    def _read(self, path: str, bound: int, instead: str) -> Content:
        with self._entry(path) as entry, naming(path):
            _check_readable(entry.status, path)
            _check_size(entry.status.st_size, bound, instead, path)
            file = os.open(entry.name, _READ, dir_fd=entry.directory)
            try:
                before = os.fstat(file)
                _check_readable(before, path)
                _check_size(before.st_size, bound, instead, path)
                data = _bytes_of(file, before.st_size, bound + 1)
                _check_size(len(data), bound, instead, path)
                return Content(data, Identity.of(before), Identity.of(os.fstat(file)))
            finally:
                os.close(file)


def _bytes_of(file: int, expected: int, bound: int) -> bytes:
    """What is in ``file`` from its start, at most ``bound`` bytes; in one piece if it has the ``expected`` size."""
    chunks: list[bytes] = []
    got = 0
    while got < bound and (chunk := os.read(file, min(bound - got, max(expected - got + 1, _CHUNK)))):
        chunks.append(chunk)
        got += len(chunk)
    return b"".join(chunks)


def _check_readable(status: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise PermissionError(errno.EACCES, f"Not a regular file but {kind}", path)


def _check_size(size: int, bound: int, instead: str, path: str) -> None:
    if size > bound:
        raise OSError(errno.EFBIG, f"The file is too large (more than {bound:,} bytes); {instead}", path)


def _lexically(absent: Absent, path: str) -> tuple[str, ...]:
    """The place of a path whose end does not exist."""
    place = list(absent.place)
    for name in absent.rest:
        if name == "..":
            if not place:
                raise PermissionError(errno.EACCES, OUTSIDE, path)
            place.pop()
        elif name != ".":
            place.append(name)
    return tuple(place)
