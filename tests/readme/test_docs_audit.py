"""The table of the audit names tests that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "audit.md"
ROWS = [
    (number, line.strip("| ").split(" | "))
    for number, line in enumerate(PAGE.read_text().splitlines(), 1)
    if line.startswith("|") and not line.startswith(("|---", "| what was "))
]
_NAMED = re.compile(r"(tests/[\w/]+(?:\.py)?)?(?:::(\w+))?")
_PROGRAM = re.compile(r"`python -m ([\w.]+)")


def defined(file: Path) -> set[str]:
    """The functions of a module."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, kinds)}


@pytest.mark.parametrize(("line", "cells"), ROWS, ids=[f"line {line}" for line, _ in ROWS])
def test_a_row_names_tests_that_are_there(line: int, cells: list[str]) -> None:
    """What was found, how it was tried, what holds now; a test or a program that shows it."""
    assert len(cells) == 4
    assert all(cells)
    named = [found for found in _NAMED.finditer(cells[3]) if found[0]]
    programs = _PROGRAM.findall(cells[3])
    assert named or programs
    file = Path()
    for found in named:
        file = ROOT / found[1] if found[1] else file
        assert file.exists(), found[0]
        assert found[2] is None or found[2] in defined(file), found[0]
    for program in programs:
        assert (ROOT / f"{program.replace('.', '/')}.py").exists(), program
