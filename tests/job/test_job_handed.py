"""Nobody is handed the whole job who could do with a part of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

WHOLE = {
    "runtime/job/checkpoint.py: dump": "saves all of it",
    "workflows/continuing.py: save": "saves all of it",
    "workflows/moment.py: __init__": "the loop's one moment is that of the job",
}
"""Those that are, each with the reason."""


def handed(path: Path) -> Iterator[str]:
    """The functions of a module that have the whole ``Job`` as a parameter."""
    tree = ast.parse(path.read_text())
    known = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "runtime.job.job"
        for alias in node.names
        if alias.name == "Job"
    }
    if path == ROOT / "runtime/job/job.py":
        known = {"Job"}
    for node in ast.walk(tree):
        if not known or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        if any(
            isinstance(name, ast.Name) and name.id in known
            for argument in every
            if argument.annotation is not None
            for name in ast.walk(argument.annotation)
        ):
            yield node.name


@pytest.mark.slow
def test_only_a_few_are_handed_the_whole_job() -> None:
    """Parts of a job have its ``Desk``, and those of the loop its ``Moment``."""
    places = {
        f"{path.relative_to(ROOT).as_posix()}: {name}"
        for package in ("holdfast", "workflows", "activities", "runtime")
        for path in sorted((ROOT / package).rglob("*.py"))
        for name in handed(path)
    }
    assert places == WHOLE.keys()
