"""From directories to trees: a whole one, and what a command left in an overlay's upper layer.

No link is followed, and what is no file, link or directory is left out and named.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from runtime.archive.trees import CHANGE_BYTES, TooMuch
from runtime.base.digests import tagged
from runtime.base.path_lengths import too_long
from runtime.base.visible import escaped
from runtime.sandbox.layers import Changed, changed_in
from runtime.trees.entries import (
    PERMISSIONS,
    Entry,
    Kind,
    directory_entry,
    file_entry,
    link_entry,
    shown,
)
from runtime.trees.tree import Tree
from runtime.workspace.checkouts.excluded import Excluded
from runtime.workspace.fingerprints import FingerprintCache, Identity
from runtime.workspace.walk import LIST, READ, SPECIAL_KINDS

FILE_BYTES = 2 << 30
"""The most bytes of one file that a job may begin with: it is archived from memory."""

_CHUNK = 1 << 20
_REPLACED = "It was replaced while it was looked through"


@dataclass(frozen=True)
class Taken:
    """A directory as a tree. ``dropped`` has a line for each thing that no version can hold,
    ``left`` are the paths of all that is in the directory and not in the tree.
    """

    tree: Tree
    dropped: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


@dataclass
class Difference:
    """What a command changed: paths, the bytes of new files by their digests, and what was
    dropped. ``left``: as in ``Taken``.
    """

    changes: dict[str, Entry | None] = field(default_factory=dict)
    data: dict[str, bytes] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)
    left: tuple[str, ...] = ()
    _size: int = 0

    def put(self, path: str, entry: Entry, data: bytes = b"") -> None:
        """Note what is at a path now.

        Raises:
            TooMuch: if the bytes are too many for one version.
        """
        self.changes[path] = entry
        if entry.is_file and entry.content not in self.data:
            self._size += entry.size
            check_size(self._size)
            self.data[entry.content] = data


def check_size(size: int) -> None:
    """Refuse more bytes than one version may bring.

    Raises:
        TooMuch: then.
    """
    if size > CHANGE_BYTES:
        raise TooMuch(
            f"more than {CHANGE_BYTES:,} bytes of files are new, which no version holds; exclude"
            " them from the workspace, or write less"
        )


class Digests:
    """Digests of files of this host; an unchanged file costs one ``stat``."""

    def __init__(self) -> None:
        self._known = FingerprintCache(300_000)

    def entry(self, path: str, status: os.stat_result, *, at: int | None = None) -> Entry:
        """The entry of a regular file; its path is from the directory open as ``at``, if one is.

        Raises:
            OSError: if it cannot be read.
        """
        known, size = self._known.get(Identity.of(status)), status.st_size
        if known is None:
            started = time.time_ns()
            # Not kept: a file may have more bytes than there is memory.
            digest, size = hashlib.sha256(), 0
            with _opened(path, at) as (file, before):
                for chunk in chunks_of(file, before):
                    digest.update(chunk)
                    size += len(chunk)
                after = os.fstat(file)
            known = tagged(digest)
            self._known.put(Identity.of(before), Identity.of(after), known, read_at=started)
        return Entry(Kind.FILE, status.st_mode & PERMISSIONS, size, known)


def read_file(path: str | Path, *, at: int | None = None) -> bytes:
    """A regular file's bytes; its path is from the directory open as ``at``, if one is.

    Raises:
        OSError: if it is none, or cannot be read.
    """
    with _opened(path, at) as (file, status):
        return b"".join(chunks_of(file, status))


def _read_new(path: str) -> bytes:
    """A file's bytes, for a version to bring.

    Raises:
        OSError: if it is none, or cannot be read.
        TooMuch: if they are too many for one, before they are read.
    """
    with _opened(path, None) as (file, status):
        check_size(status.st_size)
        return b"".join(chunks_of(file, status))


@contextmanager
def _opened(path: str | Path, at: int | None) -> Iterator[tuple[int, os.stat_result]]:
    file = os.open(path, READ, dir_fd=at)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is no regular file")
        yield file, status
    finally:
        os.close(file)


def chunks_of(file: int, status: os.stat_result) -> Iterator[bytes]:
    """An open file, no longer than it was when it was opened: it may grow for as long as it is
    read. Of a short one, or one that does not tell its length as those of ``/proc``, a chunk.
    """
    left = max(status.st_size, _CHUNK)
    # A byte more than there should be: so the end of a short one is seen.
    most = min(status.st_size or _CHUNK, _CHUNK) + 1
    while left and (chunk := os.read(file, min(left, most))):
        yield chunk
        left -= len(chunk)


def take(
    root: Path,
    leave: Excluded,
    digests: Digests,
    check: Callable[[str, os.stat_result], None] = lambda path, status: None,
) -> Taken:
    """The tree of a directory; ``check`` may refuse a file before it is read.

    Raises:
        OSError: if something in it cannot be read.
    """
    entries: dict[str, Entry | None] = {}
    dropped: list[str] = []
    left: list[str] = []
    for one in _walk(root, leave, left):
        mode = one.status.st_mode
        with _naming(f"{root}/{one.path}"):
            if reason := too_long(one.path):
                left.append(one.path)
                dropped.append(dropped_line(one.path, reason))
            elif stat.S_ISDIR(mode):
                entries[one.path] = directory_entry(mode)
            elif stat.S_ISLNK(mode):
                target = os.readlink(one.name, dir_fd=one.directory)
                entries[one.path] = link_entry(target)
            elif stat.S_ISREG(mode):
                check(one.path, one.status)
                entries[one.path] = digests.entry(one.name, one.status, at=one.directory)
            else:
                left.append(one.path)
                kind = SPECIAL_KINDS.get(stat.S_IFMT(mode), "no file")
                dropped.append(dropped_line(one.path, kind))
    return Taken(Tree().changed(entries), tuple(dropped), tuple(left))


def check_file(path: str, status: os.stat_result) -> None:
    """Refuse a file that no job may begin with.

    Raises:
        TooMuch: then.
    """
    if status.st_size > FILE_BYTES:
        raise TooMuch(
            f"{escaped(shown(path))} has {status.st_size:,} bytes, and no file that a job begins"
            f" with may have more than {FILE_BYTES:,}; exclude it from the workspace"
        )


def dropped_line(path: str, kind: str) -> str:
    """The line that says what was left out."""
    return f"{path} is {kind}, which a version cannot hold: it was dropped"


def differing(root: Path, before: Tree, leave: Excluded, digests: Digests) -> Difference:
    """What differs between a tree and a directory, by looking at all of it.

    Raises:
        OSError: if something in it cannot be read, or something else is in its place: what is
            behind a link that a command has put there is none of its files.
        TooMuch: if it has more new bytes than a version may bring.
    """
    if root.is_symlink() or not root.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "The workspace's own directory was replaced")

    def check(path: str, status: os.stat_result) -> None:
        # One of another length is new, and need not be read to see that.
        if (old := before.get(path)) is None or old.size != status.st_size:
            check_size(status.st_size)

    taken = take(root, leave, digests, check)
    difference = Difference(dropped=list(taken.dropped), left=taken.left)
    for path, entry in before.difference(taken.tree).items():
        if entry is None:
            difference.changes[path] = None
        else:
            data = _read_new(f"{root}/{path}") if entry.is_file else b""
            # Of the bytes just read: the file may have changed since its digest was taken.
            difference.put(path, file_entry(data, entry.mode) if entry.is_file else entry, data)
    return difference


def left_in(upper: Path, before: Tree, leave: Excluded) -> Difference:
    """What a command changed of a tree, by what it left in the upper layer of an overlay.

    What it only touched is no change. Costs by what is in the layer.
    """
    difference = Difference()
    for change in changed_in(upper):
        path, old = change.path, before.get(change.path)
        directory = change.kind == "directory"
        if leave.above(path, directory=directory):
            continue
        if change.kind == "dropped":
            difference.dropped.append(dropped_line(path, change.reason))
        if change.kind in {"deleted", "dropped"}:
            if old is not None:
                difference.changes[path] = None
            continue
        entry, data = _entry(f"{upper}/{path}", change)
        if entry != old:
            difference.put(path, entry, data)
        if directory and change.opaque:
            _hide(difference.changes, before, path, upper)
    return difference


def _entry(place: str, change: Changed) -> tuple[Entry, bytes]:
    if change.kind == "directory":
        return directory_entry(change.mode), b""
    if change.kind == "symlink":
        return link_entry(os.readlink(place)), b""  # noqa: PTH115 as above
    data = _read_new(place)
    return file_entry(data, change.mode), data


def _hide(changes: dict[str, Entry | None], before: Tree, path: str, upper: Path) -> None:
    """What a directory had that the command removed and made anew: gone unless it is there."""
    for name in before.names(path):
        if not os.path.lexists(upper / path / name):
            changes[f"{path}/{name}"] = None


@dataclass(frozen=True)
class _Seen:
    """A path, and its name in a directory that is open until the next is seen."""

    path: str
    directory: int
    name: str
    status: os.stat_result


def _walk(root: Path, leave: Excluded, left: list[str]) -> Iterator[_Seen]:
    """All that is in a directory, each directory before what is in it.

    Whoever changes it meanwhile: a directory that has become a link is not gone through.
    """
    waiting: list[tuple[str, os.stat_result | None]] = [("", None)]
    while waiting:
        folder, known = waiting.pop()
        directory = os.open(f"{root}/{folder}", LIST)
        try:
            if known is not None and not os.path.samestat(known, os.fstat(directory)):
                raise FileNotFoundError(errno.ENOENT, _REPLACED, f"{root}/{folder}")
            inner: list[tuple[str, os.stat_result | None]] = []
            for entry in _listed(directory):
                path = f"{folder}/{entry.name}" if folder else entry.name
                with _naming(f"{root}/{path}"):
                    status = entry.stat(follow_symlinks=False)
                if leave.has(path, directory=stat.S_ISDIR(status.st_mode)):
                    left.append(path)
                    continue
                yield _Seen(path, directory, entry.name, status)
                if stat.S_ISDIR(status.st_mode) and not too_long(path):
                    inner.append((path, status))
        finally:
            os.close(directory)
        # Reversed, as the last one is taken first: names come in their order.
        waiting.extend(reversed(inner))


def _listed(directory: int) -> list[os.DirEntry[str]]:
    with os.scandir(directory) as entries:
        return sorted(entries, key=lambda entry: entry.name)


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """The system names what it was asked for, which is a name alone."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, path) from None
