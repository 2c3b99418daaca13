"""What ``write``, ``edit`` and their like make of a tree (docs/workspaces.md). Pure: files' bytes
come by a function.
"""

from __future__ import annotations

import difflib
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from runtime.trees.entries import Entry, Kind, directory_entry, file_entry, is_directory
from runtime.trees.places import entry_at, place_of
from runtime.trees.tree import Tree

Read = Callable[[Entry], bytes]

NEAR_LINES = 8
"""Lines of the nearest stretch that an ``edit`` shows which did not find its text."""

_LOOKED_AT = 4_000
"""Lines of a file that are compared with what was not found in it."""


@dataclass
class Edited:
    """What changes, the bytes of new files by digest, and what the call gives."""

    changes: dict[str, Entry | None] = field(default_factory=dict)
    data: dict[str, bytes] = field(default_factory=dict)
    value: Any = None

    def put(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """A file with these bytes."""
        entry = file_entry(data, mode)
        self.changes[path] = entry
        self.data[entry.content] = data


def write(tree: Tree, path: str, data: bytes, *, parents: bool) -> Edited:
    """A file's whole content. Directories above it are made if ``parents``.

    Raises:
        OSError: as Python's own ``open``.
    """
    place, old = _file(tree, path, parents=parents)
    made = Edited(value=len(data))
    # What replaces a file keeps its mode, as with ``open``.
    made.put(place, data, 0o644 if old is None else old.mode)
    return made


def append(tree: Tree, path: str, data: bytes, read: Read) -> Edited:
    """Bytes at the end of a file, which is made if it is not there."""
    place, old = _file(tree, path, parents=False)
    made = Edited(value=len(data))
    before = b"" if old is None else read(old)
    made.put(place, before + data, 0o644 if old is None else old.mode)
    return made


def edit(tree: Tree, path: str, old: str, new: str, count: int, read: Read) -> Edited:
    """``new`` in the place of ``old``, which must be in the file ``count`` times.

    Raises:
        ValueError: if it is not; the message shows the nearest lines, or where it is.
        OSError: as Python's own ``open``.
    """
    place, entry = entry_at(tree, path)
    if entry.kind is Kind.DIRECTORY:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not old:
        raise ValueError("edit(): old is empty; to write a whole file use write(path, text)")
    if count < 1:
        raise ValueError("edit(): count is how often old is replaced: 1 or more")
    data = read(entry)
    text = data.decode("utf-8")
    times = text.count(old)
    if times != count and "\n" in old and "\r\n" not in old:
        # Files with the line ends of Windows are read as if they had others.
        windows = old.replace("\n", "\r\n")
        if there := text.count(windows):
            new = new.replace("\r\n", "\n").replace("\n", "\r\n")
            old, times = windows, there
    if times != count:
        raise ValueError(_not_so_often(path, text, old, times, count))
    made = Edited()
    made.put(place, text.replace(old, new).encode("utf-8"), entry.mode)
    return made


def delete(tree: Tree, path: str) -> Edited:
    """A file, a link, or a directory with all in it, gone."""
    # A link goes itself, and not what it leads to.
    place, _ = entry_at(tree, path, follow=False)
    return Edited(changes={place: None})


def unlink(tree: Tree, path: str) -> Edited:
    """A file or a link, gone."""
    place, entry = entry_at(tree, path, follow=False)
    if entry.kind is Kind.DIRECTORY:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return Edited(changes={place: None})


def rmdir(tree: Tree, path: str) -> Edited:
    """An empty directory, gone."""
    place, entry = entry_at(tree, path, follow=False)
    if entry.kind is not Kind.DIRECTORY:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    if tree.names(place):
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
    return Edited(changes={place: None})


def mkdir(tree: Tree, path: str, *, parents: bool, exist_ok: bool) -> Edited:
    """A directory."""
    place = place_of(tree, path)
    there = tree.get(place)
    if there is not None:
        if exist_ok and there.kind is Kind.DIRECTORY:
            return Edited()
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    _check_parent(tree, place, path, parents=parents)
    return Edited(changes={place: directory_entry()})


def move(tree: Tree, path: str, to: str, *, into: bool) -> Edited:
    """What is at ``path``, at ``to``; a file there is replaced.

    A directory there takes it in, if ``into``.

    Raises:
        OSError: if there is nothing to move, or no place for it.
    """
    place, entry = entry_at(tree, path, follow=False)
    # As a shell does: what a link leads to takes the file in. A rename puts it in the link's place.
    target = place_of(tree, to, follow=into)
    there = tree.get(target)
    if is_directory(there) and target != place:
        if into:
            target = f"{target}/{place.rpartition('/')[2]}" if target else place.rpartition("/")[2]
            there = tree.get(target)
        if is_directory(there) and tree.names(target):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), to)
    # Nothing can be moved into itself.
    if not target or target.startswith(f"{place}/"):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), to)
    if target == place:
        return Edited()
    _check_parent(tree, target, to, parents=into)
    moved: dict[str, Entry | None] = {place: None, target: entry}
    for below, inner in tree.under(place):
        moved[target + below[len(place) :]] = inner
    return Edited(changes=moved)


def _file(tree: Tree, path: str, *, parents: bool) -> tuple[str, Entry | None]:
    """The place of a file that is to be written, and the file that is there."""
    place = place_of(tree, path)
    entry = tree.get(place)
    if is_directory(entry):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    _check_parent(tree, place, path, parents=parents)
    return place, entry


def _check_parent(tree: Tree, place: str, path: str, *, parents: bool) -> None:
    parent = place.rpartition("/")[0]
    if not parents and tree.get(parent) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _not_so_often(path: str, text: str, old: str, there: int, count: int) -> str:
    if there == 0:
        return f"edit(): old is not in {path!r}{_nearest(text, old)}"
    lines = []
    at = 0
    # As they are counted and replaced: none begins in another.
    for _ in range(min(there, NEAR_LINES)):
        at = text.index(old, at)
        lines.append(str(len(_lines(f"{text[:at]}|")) - 1))
        at += len(old)
    more = ", ..." if there > NEAR_LINES else ""
    times = "once" if count == 1 else f"{count} times"
    return (
        f"edit(): old is in {path!r} {there} times, not {times}: at lines"
        f" {', '.join(lines)}{more}; give more of the text around it, or count={there}"
    )


def _nearest(text: str, old: str) -> str:
    """The lines of a text that are most like the first line of what was not found, if any are."""
    lines, wanted = _lines(text)[:_LOOKED_AT], _lines(old)
    # The first line that holds something: blank ones are like each other everywhere.
    first = next((line for line in wanted if line.strip()), "")
    near = difflib.get_close_matches(first, lines, n=1, cutoff=0.6)
    if not near:
        return "; nothing in it is like its first line"
    start = max(lines.index(near[0]) - wanted.index(first), 0)
    shown = lines[start : start + min(len(wanted) + 1, NEAR_LINES)]
    told = "\n".join(f"{start + number}: {line[:200]}" for number, line in enumerate(shown))
    return f"; nearest is, from line {start} on (lines count from 0):\n{told}"


def _lines(text: str) -> list[str]:
    """Without their ends, as views number them: a form feed or U+2028 ends none."""
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
