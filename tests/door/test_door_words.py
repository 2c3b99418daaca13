"""Names of results say what they are: ``found`` and ``given`` say only that there is something."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

SILENT = frozenset({"found", "given", "told_now", "unbegun_end", "unsaid"})
"""Two that say nothing, and three that nobody guessed when they were there."""

FOLDERS = ("holdfast", "workflows", "activities", "runtime", "infra", "docs_tools")

PAYLOADS = frozenset({("activities/contracts.py", "given")})
"""Fields that a worker of an earlier release may read, so that their names stay."""


def bound_in(source: str) -> Iterator[tuple[int, str]]:
    """The names that a module binds, with their lines: variables, attributes, parameters,
    functions, and those of imports and patterns.
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                yield node.lineno, name
            case (
                ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
            ):
                yield node.lineno, name


def silent_in(source: str) -> list[tuple[int, str]]:
    """Those of them that say nothing of what they hold, private ones too."""
    return sorted((line, name) for line, name in bound_in(source) if name.strip("_") in SILENT)


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_say_what_they_hold(folder: str) -> None:
    """No name that a module binds is ``found`` or ``given``: its reader would have to look up what
    was.
    """
    places = [
        f"{place}:{line}: {name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, name in silent_in(path.read_text())
        if (place := path.relative_to(ROOT).as_posix(), name) not in PAYLOADS
    ]
    assert places == []


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "with a as found: pass",
        "x = [found for found in y]",
        "if found := a: pass",
        "self.found = 1",
        "class A:\n    given: int",
        "lambda given: 1",
        "def f(*given): pass",
        "def _found(): pass",
        "import a as found",
        "try: pass\nexcept A as found: pass",
        "match a:\n    case [1, *found]: pass",
        "match a:\n    case {'b': found}: pass",
        "match a:\n    case {**found}: pass",
    ],
)
def test_each_way_to_bind_a_name_is_seen(source: str) -> None:
    """However a module comes by it."""
    assert [name.strip("_") for _, name in silent_in(source)] in (["found"], ["given"])


def test_words_and_other_names_are_left_alone() -> None:
    """Messages, what another library calls so, and names in which it is one word of several."""
    source = "def f(a):\n    '''What was found.'''\n    a.found(given=1)\n    not_found = 'given'"
    assert silent_in(source) == []
