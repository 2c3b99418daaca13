"""What differs between two versions: patches, renames, and what git has no words for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pygit2
from pygit2.enums import DeltaStatus, DiffFind, DiffOption, DiffStatsFormat

from runtime.archive.trees import Trees
from runtime.base.visible import escaped
from runtime.trees.entries import Entry, Kind, is_directory, shown
from runtime.trees.tree import Tree
from runtime.workspace.git.objects import LINK_REFUSED, git_mode, is_own, is_refused, scratch

_LETTERS = {
    DeltaStatus.ADDED: "A",
    DeltaStatus.DELETED: "D",
    DeltaStatus.MODIFIED: "M",
    DeltaStatus.RENAMED: "R",
    DeltaStatus.TYPECHANGE: "T",
}


@dataclass(frozen=True)
class FileChange:
    """One changed file or link.

    ``letter`` is A, M, D, R (renamed) or T (a file became a link, or a link a file). ``was`` is its
    path before, ``added`` and ``deleted`` are lines, ``patch`` is its part of a patch.
    """

    letter: str
    path: str
    was: str
    old: Entry | None
    new: Entry | None
    binary: bool
    added: int
    deleted: int
    patch: bytes


@dataclass(frozen=True)
class Differences:
    """What leads from one version to another.

    ``untold`` has a line for each thing that no patch of git's tells: empty directories, and modes
    but for whether a file can be run. ``stat`` is git's table.
    """

    files: tuple[FileChange, ...]
    untold: tuple[str, ...]
    stat: str

    @property
    def patch(self) -> bytes:
        """The whole patch."""
        return b"".join(change.patch for change in self.files)


@contextmanager
def _diff(
    trees: Trees, old: Tree, new: Tree, *, binary: bool, whole: bool
) -> Iterator[pygit2.Diff]:
    with scratch(trees.content) as objects:
        before, after = (objects.tree(tree, whole=whole) for tree in (old, new))
        flags = DiffOption.SHOW_BINARY if binary else DiffOption.NORMAL
        # Typechanges stay one change, as a file and a link at one path are one thing to a reader.
        flags |= DiffOption.INCLUDE_TYPECHANGE
        repository = objects.repository
        diff = repository.diff(before, after, flags=flags)
        diff.find_similar(flags=DiffFind.FIND_RENAMES)
        yield diff


def differences(
    trees: Trees, before: str, after: str, *, binary: bool = False, width: int = 80
) -> Differences:
    """What leads from version ``before`` to version ``after``.

    With ``binary``, as a patch that ``git apply`` takes: the bytes of binary files are in it, and
    what is in a ``.git`` is not, since git refuses that. ``width`` is that of the table in columns.
    """
    old, new = trees.tree(before), trees.tree(after)
    few, later = _sparse(old, new)
    retyped = [path for path, entry in few.under() if _is_other_kind(entry, later.get(path))]
    gone = dict.fromkeys(retyped)
    with _diff(
        trees, few.changed(gone), later.changed(gone), binary=binary, whole=not binary
    ) as diff:
        files = [_change(patch, old, new) for patch in diff if patch is not None]
        stat = _stat(diff, width)
    for path in retyped:
        files += _retyped(trees, path, old, new, binary=binary)
    if retyped or any(_told(path) != path for tree in (few, later) for path, _ in tree.under()):
        # A second time: git's table has names as they are, whatever a terminal makes of them.
        few, later = _as_told(few), _as_told(later)
        with _diff(trees, few, later, binary=binary, whole=not binary) as diff:
            stat = _stat(diff, width)
    files.sort(key=lambda change: os.fsencode(change.path))
    return Differences(tuple(files), tuple(_untold(old, new, patch=binary)), stat)


def _is_other_kind(entry: Entry, after: Entry | None) -> bool:
    """Whether a file became a link, or a link a file."""
    kinds = {entry.kind, after.kind if after is not None else entry.kind}
    return len(kinds) == 2 and Kind.DIRECTORY not in kinds


def _retyped(
    trees: Trees, path: str, old: Tree, new: Tree, *, binary: bool
) -> Iterator[FileChange]:
    """A file that became a link, or a link that became a file: in a patch one is deleted and the
    other is new, as git has it. It is no rename's source or end, as libgit2 would take it for.
    """
    was, now = old.get(path), new.get(path)
    parts: list[FileChange] = []
    for before, after in (({path: was}, {}), ({}, {path: now})):
        trees_of = Tree().changed(before), Tree().changed(after)
        with _diff(trees, *trees_of, binary=binary, whole=not binary) as diff:
            parts += [_change(patch, *trees_of) for patch in diff if patch is not None]
    if parts:
        yield FileChange(
            letter="T",
            path=path,
            was=path,
            old=was,
            new=now,
            binary=any(part.binary for part in parts),
            added=sum(part.added for part in parts),
            deleted=sum(part.deleted for part in parts),
            patch=b"".join(part.patch for part in parts),
        )


def _stat(diff: pygit2.Diff, width: int) -> str:
    return diff.stats.format(DiffStatsFormat.FULL | DiffStatsFormat.INCLUDE_SUMMARY, width)


def _told(path: str) -> str:
    """A path on one line. Backslashes are doubled, or two files could have one name."""
    return escaped(shown(path.replace("\\", "\\\\")))


def _as_told(tree: Tree) -> Tree:
    return Tree().changed({_told(path): entry for path, entry in tree.under()})


def _sparse(old: Tree, new: Tree) -> tuple[Tree, Tree]:
    """Both trees, without what is the same in them: to compare them costs by what differs."""
    before: dict[str, Entry | None] = {}
    after: dict[str, Entry | None] = {}
    for path, entry in old.difference(new).items():
        was = old.get(path)
        if was is not None:
            before[path] = was
            # What was in a directory goes with it, though the difference names the directory alone.
            if is_directory(was) and not is_directory(entry):
                before.update(old.under(path))
        if entry is not None:
            after[path] = entry
    return Tree().changed(before), Tree().changed(after)


def _change(patch: pygit2.Patch, old: Tree, new: Tree) -> FileChange:
    delta = patch.delta
    was, path = (os.fsdecode(file.raw_path) for file in (delta.old_file, delta.new_file))
    letter = _LETTERS.get(delta.status, "M")
    _, added, deleted = patch.line_stats
    return FileChange(
        letter=letter,
        path=path,
        was=was,
        old=None if letter == "A" else old.get(was),
        new=None if letter == "D" else new.get(path),
        binary=bool(delta.is_binary),
        added=added,
        deleted=deleted,
        patch=_words(patch),
    )


def _words(patch: pygit2.Patch) -> bytes:
    """What git says of a change. Of a binary file that has another name or mode and the same bytes
    libgit2 says that it differs too, which ``git apply`` takes for bytes that are not there.
    """
    words = patch.data
    if patch.delta.old_file.id != patch.delta.new_file.id:
        return words
    *lines, last = words.splitlines(keepends=True)
    return b"".join(lines) if last.startswith(b"Binary files ") else words


def _untold(old: Tree, new: Tree, *, patch: bool) -> Iterator[str]:
    """What git has no words for, by path."""
    for path, entry in old.difference(new).items():
        was, told = old.get(path), shown(path)
        if patch and any(map(is_own, path.split("/"))):
            yield f"{told} is left out: git takes nothing that is in a .git"
        elif patch and is_refused(path, entry or was):
            yield f"{told} is left out: {LINK_REFUSED}"
        elif entry is None:
            gone = [path, *(place for place, _ in old.under(path))]
            yield from (
                f"empty directory {shown(place)} is gone"
                for place in gone
                if is_directory(old.get(place)) and not old.names(place)
            )
        elif is_directory(entry):
            if not new.names(path) and not is_directory(was):
                yield f"empty directory {told} is new"
            elif is_directory(was) and was.mode != entry.mode:
                yield f"mode of directory {told}: {was.mode:o} -> {entry.mode:o}"
        elif entry.is_file:
            before = was.mode if was is not None and was.is_file else git_mode(entry) & 0o777
            same = was is None or not was.is_file or git_mode(was) == git_mode(entry)
            if same and before != entry.mode:
                yield f"mode of {told}: {before:o} -> {entry.mode:o}"
