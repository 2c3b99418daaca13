"""A job looks at the time and at what has arrived after each wait for the server, since every such
wait goes through ``Moment.after``: read out of the code of its workflow.
"""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from workflows import patches

WORKFLOWS = Path(__file__).parent.parent.parent / "workflows"
OF_A_BATCH = {"batch.py", "beside.py", "finishing.py", "granting.py", "paging.py"}
"""They have no ``Moment``: a batch's time is nobody's."""

WAITS = {
    "calling.result_of",
    "workflow.execute_activity",
    "workflow.start_activity",
    "workflow.wait_condition",
    "workflow.sleep",
    "batch.signal",
}
"""What waits for the server. What runs within the worker does not: see ``workflows/moment.py``."""

PARTS = {"asleep": "sleeping"}
"""Parts of the loop whose names are not those of their modules."""

NOTHING_PASSES = {
    "continuing.load": "a checkpoint is read before the first look",
    "answers.ask": "a record is asked: no time of the job's passes",
    "effects.repeated": "a record's tick is read again: no time of the job's passes",
    "job.go_on_in_another_run": "the run ends here, and the next one looks when it begins",
    "checking.check": "the job has ended: its result is given a score",
    "job.end": "the job has ended",
}
"""Those that wait and do not look, each with the reason."""


def sources() -> dict[str, str]:
    """The modules of a job's workflow, by their names."""
    return {
        path.stem: path.read_text()
        for path in sorted(WORKFLOWS.glob("*.py"))
        if path.name not in OF_A_BATCH
    }


def called(node: ast.expr, module: str, places: dict[str, str]) -> set[str]:
    """What is called to make what is awaited, by module and name; what ``after`` is given is its
    own.
    """
    match node:
        case ast.Call(func=ast.Attribute(attr="after")):
            return set()
        case ast.Call(func=ast.Attribute(attr="shield" | "ensure_future"), args=args):
            return set[str]().union(*(called(argument, module, places) for argument in args))
        case ast.Call(func=ast.Name(id=name)):
            return {f"{places.get(name, module)}.{name}"}
        case ast.Call(func=ast.Attribute(attr=name, value=ast.Name(id="self"))):
            return {f"{module}.{name}"}
        case ast.Call(
            func=ast.Attribute(attr=name, value=ast.Attribute(attr=part) | ast.Name(id=part))
        ):
            part = part.lstrip("_")
            return {f"{PARTS.get(part, part)}.{name}"}
    return set()


def awaited(function: ast.AsyncFunctionDef, module: str, places: dict[str, str]) -> set[str]:
    """What a function awaits, also by way of a variable."""
    made: dict[str, set[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    known = made.setdefault(target.id, set())
                    known |= called(node.value, module, places)
    found = set[str]()
    for node in ast.walk(function):
        if isinstance(node, ast.Await):
            what = node.value
            found |= (
                made.get(what.id, set())
                if isinstance(what, ast.Name)
                else called(what, module, places)
            )
    return found


def awaits_of(modules: dict[str, str]) -> dict[str, set[str]]:
    """What each function awaits."""
    awaits: dict[str, set[str]] = {}
    for module, text in modules.items():
        tree = ast.parse(text)
        places = {
            alias.asname or alias.name: (node.module or "").rpartition(".")[2]
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.AsyncFunctionDef):
                found = awaited(node, module, places)
                awaits[f"{module}.{node.name}"] = found - {f"{module}.{node.name}"}
    return awaits


def waiting(awaits: dict[str, set[str]], excused: set[str]) -> set[str]:
    """The functions that wait for the server, themselves or in others, and do not look after it."""
    waits, before = set(WAITS), -1
    while len(waits) > before:
        before = len(waits)
        waits |= {name for name, found in awaits.items() if found & (waits - excused)}
    return waits - WAITS


def test_every_wait_of_the_loop_is_looked_after() -> None:
    """``run`` reaches no wait but by way of ``after``, or of those that say why they need none."""
    excused, awaits = set(NOTHING_PASSES), awaits_of(sources())
    found = waiting(awaits, excused)
    assert "job.run" not in found, sorted(found)
    assert excused <= found, "who is excused waits"
    for name in sorted(excused):
        assert "job.run" in waiting(awaits, excused - {name}), f"{name} need not be excused"


def test_a_wait_that_nobody_looks_after_is_found() -> None:
    """In the loop, in a part of it, and behind a variable."""
    for module, looks, forgets in (
        ("job", "(await self.moment.after(read, lambda read: read.worked))", "(await read)"),
        ("pausing", "self._moment.after(resumed, lambda _: 0.0)", "resumed"),
        ("slices", "moment.after(self._arrival(), lambda _: 0.0)", "self._arrival()"),
    ):
        modules = sources()
        assert looks in modules[module]
        modules[module] = modules[module].replace(looks, forgets)
        assert "job.run" in waiting(awaits_of(modules), set(NOTHING_PASSES)), module


def test_nobody_else_looks() -> None:
    """Only ``Moment`` takes note: what has arrived is moved by it alone."""
    for name, text in sources().items():
        if name != "moment":
            assert "oment._look(" not in text, name
            assert "oment.now =" not in text, name


def test_patches_are_asked_for_as_a_run_begins() -> None:
    """Nobody asks the SDK for one but ``workflows/patches.py``, which knows of each when a run
    asked for it: a run of before must not go by it.
    """
    asked: set[str] = set()
    for path in sorted(WORKFLOWS.glob("*.py")):
        text = path.read_text()
        assert path.name == "patches.py" or "workflow.patched(" not in text, path.name
        module = import_module(f"workflows.{path.stem}")
        for name in re.findall(r"(?<!def )patched\(([A-Z_]+|\"[^\"]+\")\)", text):
            asked.add(name.strip('"') if name.startswith('"') else getattr(module, name))
    # ``patches.py`` asks for it itself.
    assert asked == patches.COVERED | set(patches.AT_START)


def test_a_patch_that_no_run_asks_for_as_it_begins_is_refused() -> None:
    """A run that began before it would go by it, and not replay."""
    with pytest.raises(ValueError, match="'new' as it begins: add it to AT_START"):
        patches.patched("new")
