"""Which statement wrote each line of a file: lines are followed back through the versions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pygit2
from pygit2.enums import DiffOption

from runtime.archive.trees import Trees
from runtime.archive.workspace_history import WorkspaceHistory, WorkspaceTurn
from runtime.trees.tree import Tree
from runtime.workspace.git.differences import differences

_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class Line:
    """A line of a file, with its end. ``turn`` is that whose statement wrote it, 0 if it was there
    before the first; ``path`` is where the file was then.
    """

    text: bytes
    turn: int
    path: str


def lines_of(trees: Trees, history: WorkspaceHistory, turn: int, path: str) -> tuple[Line, ...]:
    """The lines of the file at ``path`` after a turn.

    A file that a statement moved, as a whole or with changes, is followed to where it was. A line
    that a statement wrote anew as it was before is as old as the difference by libgit2 says.
    """
    data = _data(trees, trees.tree(history.after(turn)), path)
    blamed: list[Line | None] = [None] * len(_split(data or b""))
    # Of each line that is still looked for, its place in the version that is looked at.
    wanted = list(range(len(blamed)))
    for one in reversed([one for one in history.turns if one.turn <= turn]):
        if one.before == one.after or not any(number >= 0 for number in wanted):
            continue
        earlier = _before(trees, one, path)
        old, new = (
            _data(trees, trees.tree(version), place) if place else None
            for version, place in ((one.before, earlier), (one.after, path))
        )
        kept = _kept(old or b"", new or b"")
        for final, number in enumerate(wanted):
            if number < 0:
                continue
            wanted[final] = kept.get(number, -1)
            if wanted[final] < 0:
                blamed[final] = Line(b"", one.turn, path)
        path = earlier or path
    lines = _split(data or b"")
    return tuple(
        Line(text, line.turn if line else 0, line.path if line else path)
        for text, line in zip(lines, blamed, strict=True)
    )


def _before(trees: Trees, one: WorkspaceTurn, path: str) -> str:
    """Where the file was before a statement; nothing if it was not."""
    old, new = trees.tree(one.before), trees.tree(one.after)
    there = old.get(path)
    if there is not None and there.is_file:
        return path
    # A search for renames costs by what the statement changed.
    changes = differences(trees, one.before, one.after).files if new.get(path) else ()
    return next(
        (change.was for change in changes if change.letter == "R" and change.path == path), ""
    )


def _data(trees: Trees, tree: Tree, path: str) -> bytes | None:
    entry = tree.get(path)
    return trees.content(entry) if entry is not None and entry.is_file else None


def _split(data: bytes) -> list[bytes]:
    return _LINE.findall(data)


def _kept(old: bytes, new: bytes) -> dict[int, int]:
    """Of each line of ``new`` that was in ``old``, its place there; both from 0."""
    count = len(_split(new))
    if old == new:
        return {number: number for number in range(count)}
    # Also of what libgit2 takes for binary, where it would tell of no lines.
    patch = pygit2.Patch.create_from(
        old, new, context_lines=0, interhunk_lines=0, flag=DiffOption.FORCE_TEXT
    )
    kept: dict[int, int] = {}
    at, shift = 0, 0
    for hunk in patch.hunks:
        # Of a hunk that adds no line, ``new_start`` is the line before it.
        start = hunk.new_start - 1 if hunk.new_lines else hunk.new_start
        kept.update((number, number + shift) for number in range(at, start))
        at = start + hunk.new_lines
        shift += hunk.old_lines - hunk.new_lines
    kept.update((number, number + shift) for number in range(at, count))
    return kept


def turns_in(lines: Sequence[Line]) -> list[int]:
    """The turns that wrote some of the lines, in order; 0 is before the first."""
    return sorted({line.turn for line in lines})
