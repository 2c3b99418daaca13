"""``holdfast blame JOB PATH``: which statement wrote each line of a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime.base.errors import InputError, NotFound
from runtime.base.visible import escaped
from runtime.cli.output import json_document, say
from runtime.cli.workspace.chosen import At, chosen_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime.trees.tree import Tree
    from runtime.workspace.git.lines import Line

_LINES = re.compile(r"(?P<path>.+):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?", re.ASCII | re.DOTALL)
_STATEMENT_CHARS = 44


@dataclass(frozen=True)
class Blamed:
    """Lines of a file after a turn: the first has the number ``first``."""

    at: At
    path: str
    first: int
    lines: tuple[Line, ...]


def blamed_lines(job: str, place: str, run: str | None, store: str | None) -> Blamed:
    """The lines that ``JOB[@N]`` and ``PATH[:FROM[-TO]]`` name.

    Raises:
        InputError: if the path is no file, or has no such lines.
        NotFound: if there is no such version or path.
    """
    from runtime.workspace.git.lines import lines_of

    at = chosen_version(job, run, store)
    trees = at.of.trees
    tree = trees.tree(at.version)
    # A name may end as lines do: a file of the whole name is meant itself.
    match = _LINES.fullmatch(place) if tree.get(place) is None else None
    path = match["path"] if match else place
    try:
        path, entry = at.entry(tree, path)
    except NotFound:
        _check_lines(tree, place)
        raise
    if not entry.is_file:
        raise InputError(f"{at.of.name}@{at.turn}: {path} is a directory: lines are in files")
    lines = lines_of(trees, at.of.history, at.turn, path)
    first = int(match["first"]) if match else 1
    last = int(match["last"] or first) if match else len(lines)
    if match and not 1 <= first <= last <= len(lines):
        raise InputError(f"{path} has lines 1 to {len(lines)}, not {place.rpartition(':')[2]}")
    return Blamed(at, path, first, lines[first - 1 : last])


def _check_lines(tree: Tree, place: str) -> None:
    """Raises:
    InputError: if a path that is not there is one that is, and behind it what is no lines.
    """
    path, colon, lines = place.rpartition(":")
    if colon and path and tree.get(path) is not None:
        raise InputError(f"expected lines of {path} as FROM or FROM-TO, as in 3-7, got {lines!r}")


def the_turn(blamed: Blamed) -> int:
    """The one turn that wrote all the lines.

    Raises:
        InputError: if they are of several, or were there before the first.
    """
    from runtime.workspace.git.lines import turns_in

    turns = turns_in(blamed.lines)
    if len(turns) != 1:
        told = ", ".join("base" if turn == 0 else f"@{turn}" for turn in turns) or "none"
        raise InputError(f"--show is for lines that one statement wrote; these are of: {told}")
    if turns == [0]:
        raise InputError(
            "no statement wrote these lines: the job began with them, and no model was shown a"
            " prompt for them"
        )
    return turns[0]


def report(blamed: Blamed, json: bool) -> None:
    """Print the lines, each with the turn and the statement that wrote it."""
    from runtime.trees.entries import shown

    statements = _statements(blamed.at)
    if json:
        at = blamed.at
        rows: list[dict[str, Any]] = [
            {
                "line": number,
                "turn": line.turn,
                "statement": statements.get(line.turn),
                "path": shown(line.path),
                "text": line.text.decode("utf-8", "replace"),
            }
            for number, line in enumerate(blamed.lines, blamed.first)
        ]
        about = {"job": at.of.name, "run": at.of.run, "turn": at.turn, "version": at.version}
        json_document({**about, "path": shown(blamed.path), "lines": rows})
        return
    for text in _texts(blamed, statements):
        say(text)


def _texts(blamed: Blamed, statements: Mapping[int, str | None]) -> list[str]:
    from runtime.cli.text import first_line, shortened
    from runtime.trees.entries import shown

    heads = []
    for line in blamed.lines:
        words = first_line(statements.get(line.turn) or "") if line.turn else ""
        moved = f"{escaped(shown(line.path))}: " if line.path != blamed.path and line.turn else ""
        turn = f"@{line.turn}" if line.turn else "base"
        heads.append((turn, shortened(moved + words, _STATEMENT_CHARS)))
    turns = max((len(turn) for turn, _ in heads), default=0)
    width = max((len(words) for _, words in heads), default=0)
    digits = len(str(blamed.first + len(blamed.lines)))
    return [
        f"{turn:<{turns}}  {words:<{width}}  {number:>{digits}}  "
        + line.text.decode("utf-8", "replace").rstrip("\r\n")
        for number, ((turn, words), line) in enumerate(
            zip(heads, blamed.lines, strict=True), blamed.first
        )
    ]


def _statements(at: At) -> dict[int, str | None]:
    """The source of each turn's statement."""
    from runtime.cli.turns import form_of, statement_of

    form = form_of(at.of.archive)
    return {one.turn: statement_of(form, one.step)[0] for one in at.of.history.turns}
