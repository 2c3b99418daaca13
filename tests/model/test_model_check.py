"""Scores: what a check may return, and that it gets the result and files that are nobody else's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.checking import CHECK, CheckActivities, checked_by
from activities.contracts import Checked, CheckRequest, ToolResult
from activities.tools import ToolActivities
from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore
from runtime.archive.trees import Trees
from runtime.base.spec.models import ToolSpec
from runtime.base.values import JobKey
from runtime.trees.entries import file_entry
from runtime.trees.tree import Tree
from runtime.workspace.checkouts.checkout import Checkouts

KEY = JobKey(batch="night", job="a")
CHECKS = '''
from pathlib import Path
from typing import Any

def check(result: Any, workspace: str) -> dict:
    """Counts, and leaves something behind."""
    (Path(workspace) / "left.txt").write_text("x")
    calls = Path(__file__).with_name("calls")
    calls.write_text(calls.read_text() + "x" if calls.exists() else "x")
    text = (Path(workspace) / "a.txt").read_text()
    return {"score": result["n"] / 4, "remarks": f"found {text}"}

def closed(result: Any, workspace: str) -> dict:
    """Whether others of the machine cannot come to the file, whatever its mode is."""
    above = Path(workspace).parent
    assert Path(workspace, "a.txt").stat().st_mode & 0o777 == 0o666
    return {"score": above.stat().st_mode & 0o077 == 0, "remarks": str(above)}

def broken(result: Any, workspace: str) -> float:
    """Raises."""
    raise ValueError("no")
'''


@pytest.mark.parametrize(
    ("value", "score", "remarks"),
    [
        (0.5, 0.5, ""),
        (True, 1.0, ""),
        ({"score": 0}, 0.0, ""),
        ({"score": 2, "remarks": "well"}, 2.0, "well"),
        ([0.25, "so so"], 0.25, "so so"),
        ("good", None, "the check returned 'good': expected a number, or a score and remarks"),
        ({"score": "1"}, None, "the check returned {'score': '1'}: expected"),
        (float("nan"), None, "the check returned nan: expected a number"),
        pytest.param(10**400, None, "the check returned 1000000000", id="large"),
    ],
)
def test_what_a_check_may_return(value: Any, score: float | None, remarks: str) -> None:
    """A number, or one with remarks; anything else is no score, and says so."""
    found = checked_by(ToolResult(value=value))
    assert found.score == score
    assert found.remarks.startswith(remarks)


def request(folder: Path, name: str, **files: str) -> CheckRequest:
    spec = ToolSpec(name=name, target=f"checks:{name}", search_path=str(folder), stub="")
    return CheckRequest(key=KEY, turn=3, check=spec, result={"n": 1}, **files)


async def test_a_check_gets_files_that_are_nobody_elses(tmp_path: Path) -> None:
    """The version's files, in a directory that is gone afterwards; what it gave is archived, and
    another try finds it.
    """
    (tmp_path / "checks.py").write_text(CHECKS)
    store = MemoryStore()
    trees = Trees(store)
    tree = Tree().changed({"a.txt": file_entry(b"seven")})
    version = trees.write_base(tree, lambda path: b"seven").tree.version
    tools = ToolActivities(store)
    checks = CheckActivities(Checkouts(tmp_path / "own", trees), tools)
    async with tools.open():
        one = request(tmp_path, "check", version=version)
        environment = ActivityEnvironment()
        for _ in range(2):
            found = await environment.run(checks.check_result, one)
            assert found == Checked(score=0.25, remarks="found seven", worked=found.worked)
        assert (tmp_path / "calls").read_text() == "x"
        run = environment.info.workflow_run_id or ""
        recorded = JobArchive.of(store, KEY).effect(run, 3, CHECK)
        assert recorded is not None
        assert recorded["value"]["score"] == 0.25


async def test_nobody_else_of_the_machine_comes_to_a_checks_files(tmp_path: Path) -> None:
    """Their modes are those of the version, by which all may read and write them. They are gone
    afterwards, with what was around them.
    """
    (tmp_path / "checks.py").write_text(CHECKS)
    store = MemoryStore()
    tree = Tree().changed({"a.txt": file_entry(b"seven", 0o666)})
    version = Trees(store).write_base(tree, lambda path: b"seven").tree.version
    tools = ToolActivities(store)
    checks = CheckActivities(Checkouts(tmp_path / "own", Trees(store)), tools)
    async with tools.open():
        one = request(tmp_path, "closed", version=version)
        found = await ActivityEnvironment().run(checks.check_result, one)
    assert found.score == 1.0, found.remarks
    # Where a worker looks for what one that was killed has left.
    top = tmp_path.joinpath(found.remarks)
    assert (top.parent, top.exists()) == (tmp_path / "own" / "running", False)


async def test_a_check_that_raises_gives_no_score(tmp_path: Path) -> None:
    """What it raised stands in the remarks."""
    (tmp_path / "checks.py").write_text(CHECKS)
    store = MemoryStore()
    tools = ToolActivities(store)
    checks = CheckActivities(Checkouts(tmp_path / "own", Trees(store)), tools)
    async with tools.open():
        one = request(tmp_path, "broken", workspace=str(tmp_path))
        found = await ActivityEnvironment().run(checks.check_result, one)
    assert (found.score, found.remarks) == (None, "the check raised ValueError: no")
