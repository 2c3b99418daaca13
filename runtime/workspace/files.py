"""The workspace of a job: reading files inside a wall.

A job's statements name files by paths relative to one host directory. Every path is resolved
strictly beneath it (``runtime.workspace.walk``); only regular files are opened, never anything that
could block or act when opened; and every answer is bounded. What goes wrong is an ordinary Python
exception that names the path as the model wrote it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from runtime.base.host_trouble import host_trouble
from runtime.base.os_values import ScanEntry, StatResult, virtual_path
from runtime.trees.places import OUTSIDE
from runtime.workspace.fingerprints import Identity
from runtime.workspace.glob import Listed, listed_entries
from runtime.workspace.scan import Child, Scan, ScanLimits, sorted_children
from runtime.workspace.walk import (
    READ,
    SPECIAL_KINDS,
    Absent,
    Entry,
    entry_at,
    escape_name,
    naming,
)

_LIST = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_DIRECTORY
_CHUNK = 64 * 1024


@dataclass(frozen=True)
class Limits:
    """Bounds of single answers.

    ``read_bytes`` bounds what ``open(...).read()`` brings into a statement, and so into history;
    ``view_bytes`` the file behind a view, which stays outside, and ``end_bytes`` each end of a
    larger one; ``entries`` the names in one answer, ``visited`` those looked at for it, and
    ``listing_bytes`` their names together.
    """

    read_bytes: int = 256 * 1024
    view_bytes: int = 64 * 1024 * 1024
    end_bytes: int = 4 * 1024 * 1024
    entries: int = 20_000
    visited: int = 200_000
    listing_bytes: int = 1024 * 1024


@dataclass(frozen=True)
class Content:
    """A file's bytes as one read found them, and its identity before and after.

    ``missing`` counts the bytes between its ends that a file too large to be read whole does not
    show.
    """

    data: bytes
    before: Identity
    after: Identity
    missing: int = 0

    @property
    def stable(self) -> bool:
        """Nobody wrote the file while it was read."""
        return self.before == self.after


class Workspace:
    """The directory ``root`` of the host, seen from inside.

    Holds nothing open between calls; safe between threads.

    ``own``: it is a version of the job's own, laid out for it; how many links its files have is no
    part of that.

    Paths are relative, ``/workspace/...``, or start with ``~`` for the root. Every method raises
    ``FileNotFoundError``, ``PermissionError`` (the path leads out, or names no regular file),
    ``IsADirectoryError``, ``NotADirectoryError``, ``OSError`` (a loop of links, a bound) or
    ``ValueError`` (no file can have that path), each naming the path as given.
    """

    def __init__(self, root: str, limits: Limits | None = None, *, own: bool = False) -> None:
        self._root = root
        self._limits = limits or Limits()
        self._own = own

    def read_bytes(self, path: str) -> bytes:
        """The whole content of a file of at most ``read_bytes``."""
        bound, instead = self._limits.read_bytes, "use view(...) or a tool"
        with self._file(path) as (file, before):
            _check_size(before.st_size, bound, instead, path)
            data = _bytes_of(file, before.st_size, bound + 1)
            _check_size(len(data), bound, instead, path)
            return data

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
        """The content of a file, from a single read: the whole, or of more than ``view_bytes`` the
        two ends.

        Between the ends stands a line that says how much is not there.
        """
        with self._file(path) as (file, before):
            bound = self._limits.view_bytes
            if before.st_size <= bound:
                data = _bytes_of(file, before.st_size, bound + 1)
                # It may have grown since its size was asked.
                if len(data) <= bound:
                    return Content(data, Identity.of(before), Identity.of(os.fstat(file)))
            data, missing = _ends_of(file, self._limits.end_bytes)
            return Content(data, Identity.of(before), Identity.of(os.fstat(file)), missing)

    @contextmanager
    def opened(self, path: str) -> Iterator[tuple[int, Identity]]:
        """A descriptor of a file, for what reads it in another process, and the identity that the
        file had when it was opened.
        """
        with self._file(path) as (file, before):
            yield file, Identity.of(before)

    def entries(self, path: str) -> list[Listed]:
        """What is in a directory, sorted by name; links are told as what they lead to inside.

        Raises:
            OSError: also if there are more than ``visited``.
        """
        with self._directory(path) as directory:
            entries = listed_entries(directory, self._limits.visited, path)
        return [self._followed(path, entry) if entry.is_link else entry for entry in entries]

    def _followed(self, path: str, link: Listed) -> Listed:
        mode = self._kind_of(f"{path}/{link.name}")
        return replace(link, is_dir=stat.S_ISDIR(mode), is_file=stat.S_ISREG(mode))

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
        """Mode, link count, size and modification time; what depends on the machine or on who read
        it is 0.

        Access and change time are the modification time, so that reading changes no answer.
        """
        with self._entry(path) as entry:
            status = entry.status
        moment = status.st_mtime
        return StatResult(
            status.st_mode,
            0,
            0,
            1 if self._own else status.st_nlink,
            0,
            0,
            status.st_size,
            moment,
            moment,
            moment,
        )

    def listdir(self, path: str) -> list[str]:
        """The names in a directory, sorted, in their escaped form."""
        limits = self._limits
        names = [escape_name(child.name) for child in self._children(path, limits.entries)]
        if sum(map(len, names)) > limits.listing_bytes:
            raise OSError(
                errno.EFBIG, "The names in the directory are too long together; use a tool", path
            )
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
        """The directory itself and what is beneath it, sorted in each directory, down to
        ``max_depth`` levels.

        ``pattern`` (glob parts relative to ``path``) leaves out entries that cannot match it, but
        no directories. A directory below that cannot be listed reads as empty, and a link that
        leads out is neither file nor directory.
        """
        limits = ScanLimits(self._limits.entries, self._limits.visited, self._limits.listing_bytes)
        mode, is_link = self._mode(path), self.is_symlink(path)
        if mode is None and not is_link:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        scan = Scan(path, limits, max_depth, follow_symlinks, pattern, case_sensitive)
        return scan.run(self._children, self._kind_of, mode or 0, is_link)

    def resolve(self, path: str) -> str:
        """The absolute path as the model knows it, with links inside resolved; what does not exist
        is kept as written.
        """
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
        """The mode of what ``path`` names; ``None`` if there is nothing, as ``pathlib``'s
        predicates have it.
        """
        try:
            with self._entry(path, follow=follow) as entry:
                return entry.status.st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            # As for pathlib, a link that leads round in circles names nothing.
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
        with self._directory(path) as directory:
            return sorted_children(directory, bound, path)

    @contextmanager
    def _directory(self, path: str) -> Iterator[int]:
        """A directory, open for listing."""
        with self._entry(path) as entry, naming(path):
            directory = os.open(entry.name, _LIST, dir_fd=entry.directory)
            try:
                yield directory
            finally:
                os.close(directory)

    @contextmanager
    def _file(self, path: str) -> Iterator[tuple[int, os.stat_result]]:
        """A regular file, open for reading, and its status."""
        with self._entry(path) as entry, naming(path):
            # Twice: to open a device may do something, and what is open may be another file than
            # was seen.
            _check_readable(entry.status, path)
            file = os.open(entry.name, READ, dir_fd=entry.directory)
            try:
                before = os.fstat(file)
                _check_readable(before, path)
                yield file, before
            finally:
                os.close(file)


def _ends_of(file: int, each: int) -> tuple[bytes, int]:
    """The first and the last ``each`` bytes of a file, by whole lines, a line between them, and how
    many are missing.
    """
    size = os.fstat(file).st_size
    if size <= 2 * each:
        return _bytes_of(file, size, 2 * each), 0
    head = os.pread(file, each, 0)
    # Without a line end there is no whole line to stop at.
    head = head[: head.rfind(b"\n") + 1] or head
    tail = os.pread(file, each, max(size - each, len(head)))
    tail = tail[tail.find(b"\n") + 1 :] or tail
    missing = max(size - len(head) - len(tail), 0)
    between = f"[… {missing:,} bytes are not shown …]\n".encode()
    return head + (b"" if head.endswith(b"\n") else b"\n") + between + tail, missing


def _bytes_of(file: int, expected: int, bound: int) -> bytes:
    """What is in ``file`` from its start, at most ``bound`` bytes; in one piece if it has the
    ``expected`` size.
    """
    chunks: list[bytes] = []
    got = 0
    # One byte more than is expected, so that the end is usually seen by the same read.
    while got < bound and (
        chunk := os.read(file, min(bound - got, max(expected - got + 1, _CHUNK)))
    ):
        chunks.append(chunk)
        got += len(chunk)
    return b"".join(chunks)


def _check_readable(status: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        kind = SPECIAL_KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise PermissionError(errno.EACCES, f"Not a regular file but {kind}", path)


def _check_size(size: int, bound: int, instead: str, path: str) -> None:
    if size > bound:
        raise OSError(
            errno.EFBIG, f"The file is too large (more than {bound:,} bytes); {instead}", path
        )


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
