"""That a job looks at the time and at what has arrived after each wait for the server, and never
elsewhere, is enforced.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import workflows

ROOM = Path(workflows.__file__).parent

WAITS = frozenset(
    {
        *("execute_activity", "sleep", "wait_condition", "one_event", "arrival", "result_of"),
        *("perform", "tick", "look"),
    }
)
"""Calls that wait for the server: Temporal's, the room's own, and those of ``Effects`` that do."""

NOT_LOOKED_AFTER = {
    ("answers", "ask"): "what a record answers takes no time of the job's",
    ("batch", "end_carried"): "a batch is no job",
    ("beside", "until"): "a batch is no job",
    ("cancelling", "_raise_in"): "it raises a cancel, and the job goes on to its end",
    ("cancelling", "before_the_end"): "the next run looks",
    ("checking", "check"): "only the end follows",
    ("children", "follow_carried"): "a batch is no job",
    ("continuing", "load"): "the first look comes after it",
    ("cutting", "spent_on"): "who asks for it looks",
    ("cutting", "answered"): "who waits for it looks",
    ("approving", "_arrival"): "who waits for an arrival looks",
    ("effects", "_call"): "who asks for an effect looks",
    ("effects", "offered"): "who asks for it looks",
    ("effects", "open"): "who asks for it looks",
    ("finishing", "_tell"): "a batch is no job",
    ("holding", "told_all"): "the next run looks",
    ("job", "end"): "nothing follows",
    ("job", "go_on_in_another_run"): "the next run looks",
    ("moment", "arrival"): "who waits for it looks",
    ("moment", "one_event"): "who asks for it looks",
    ("paging", "_ask"): "a batch is no job",
    ("preparing", "_ends"): "who waits for them looks",
    ("slices", "_arrival"): "who waits for an arrival looks",
    ("sub_jobs", "start"): "who asks for an effect looks",
    ("sub_jobs", "end_all"): "only the end follows",
}


def functions() -> Iterator[tuple[str, ast.AsyncFunctionDef]]:
    """Every asynchronous function of the room, with its module's name."""
    for path in sorted(ROOM.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.AsyncFunctionDef):
                yield path.stem, node


def calls(node: ast.AST, names: frozenset[str]) -> list[str]:
    """What is called in it by one of these names, in full: ``workflow.sleep``."""
    found = [ast.unparse(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)]
    return [name for name in found if name.rpartition(".")[2] in names]


def test_every_wait_is_looked_after() -> None:
    """A function that waits hands the wait to ``Moment.after``, or is one of those that need
    not.
    """
    without = {
        (module, function.name)
        for module, function in functions()
        if any(_waits(call) for call in calls(function, WAITS))
        and not calls(function, frozenset({"after"}))
    }
    assert without == NOT_LOOKED_AFTER.keys()


def _waits(call: str) -> bool:
    """Whether it is a call of Temporal's ``workflow``, of the room's own ways to wait and to call
    activities, or of the job's effects.
    """
    of, _, name = call.rpartition(".")
    if name in {"execute_activity", "sleep", "wait_condition"}:
        return of == "workflow"
    return name in {"one_event", "arrival", "result_of"} or of.endswith("effects")


def test_nobody_else_looks() -> None:
    """The workflow's time is asked by the moment, and where a job or a batch begins."""
    asked = {
        (path.stem, line.strip())
        for path in sorted(ROOM.glob("*.py"))
        for line in path.read_text().splitlines()
        if "workflow.time()" in line and path.stem != "moment"
    }
    assert {module for module, _ in asked} == {"granting", "job"}
    assert len(asked) == 3, "a job's first time, that of a fork, and a batch's first"
    private = [path.stem for path in sorted(ROOM.glob("*.py")) if "._look(" in path.read_text()]
    assert private == [
        "moment",
        "sleeping",
    ], "Moment's own look is private to it; that of a sleep is a tick"
