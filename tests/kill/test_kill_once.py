"""A tool that runs at most once, and workers that die around its call."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from runtime.archive.job import JobArchive
from runtime.archive.stores import open_store
from runtime.archive.verify import damage, verify_job
from runtime.base.home import state_home
from tests.kill.nursery import forked
from tests.kill.processes import DEADLINE, kill_group, kill_what_is_left

TOOLS = '''
import os, signal
from pathlib import Path
from holdfast import tool

here = Path(__file__).parent

@tool(effect="once")
def pay(point: str) -> str:
    """Pay."""
    with (here / "paid").open("a") as file:
        file.write(f"{point}\\n")
    if point == "in-the-tool" and os.environ.get("HOLDFAST_FAILPOINT") == point:
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()
    return "paid"
'''

POLICY = """
def respond(messages):
    text = str(messages)
    point = text.split("POINT ")[1].split(" ")[0]
    if "told:" in text:
        return {"code": "finish(said)"}
    return {"code": f'''
try:
    said = pay({point!r})
except OutcomeUnknown as error:
    said = "unknown" if "sha256:" in str(error) and "pay()" in str(error) else str(error)
print("told:", said)
'''}
"""

JOBS = """
batch: {batch}
jobs:
  - id: a
    goal: Pay. POINT {point} .
    workspace: ./workspace
    model: scripted/policy.py
    tools: ["paytools:pay"]
    result: {{type: string}}
"""

POINTS = (
    ("archive.effect.before_put:1", 1, "paid"),
    ("archive.effect.after_put:1", 0, "unknown"),
    ("tool.after_claim", 0, "unknown"),
    ("tool.before_run", 0, "unknown"),
    ("in-the-tool", 1, "unknown"),
    ("tool.after_run", 1, "unknown"),
    ("archive.effect.before_put:2", 1, "unknown"),
    ("archive.effect.after_put:2", 1, "paid"),
    ("tool.before_return", 1, "paid"),
)
"""Where the worker dies, how often the tool then ran in all, and what its statement got: before the
claim the call is made by the next worker, behind the result that result is found.
"""

FROZEN = {"archive.effect.before_put:1", "tool.after_run"}


@pytest.mark.kill
@pytest.mark.server
def test_it_never_runs_twice(tmp_path: Path) -> None:
    """``kill -9`` of the worker between the claim, the run and the write of the result; ``run`` has
    another one go on, and a frozen replay of each job calls nothing.
    """
    home = state_home({"HOLDFAST_HOME": str(tmp_path / "home")})
    (tmp_path / "workspace").mkdir()
    (tmp_path / "paytools.py").write_text(TOOLS)
    (tmp_path / "policy.py").write_text(POLICY)
    try:
        for number, (point, calls, said) in enumerate(POINTS):
            batch = f"b{number}"
            (tmp_path / f"{batch}.yaml").write_text(JOBS.format(batch=batch, point=point))
            assert _given(tmp_path, batch, point) == 0
            assert "worker 1 ended (signal 9)" in (tmp_path / "said.err").read_text(), point
            assert _said(tmp_path) == (point, said)[1], point
            assert _paid(tmp_path, point) == calls, point
            store = open_store(str(home.archive))
            assert damage(verify_job(JobArchive(store, batch, "a"))) == []
            if point not in FROZEN:
                continue
            frozen = ["replay", f"{batch}/a", "--from", "1", "--mode", "reexecute", "--frozen"]
            assert _run(tmp_path, [*frozen, "--json"]) == 0
            assert _paid(tmp_path, point) == calls, point
    finally:
        kill_what_is_left(home)


def _given(path: Path, batch: str, point: str) -> int:
    """The exit code of ``holdfast run``, whose worker dies at ``point``, once."""
    extra = {
        "HOLDFAST_FAILPOINT": point,
        "HOLDFAST_FAILPOINT_ONCE": str(path / f"fired-{batch}"),
        "HOLDFAST_TOOL_ENV": "HOLDFAST_FAILPOINT",
    }
    return _run(path, ["run", str(path / f"{batch}.yaml"), "--json"], extra)


def _run(path: Path, arguments: list[str], extra: dict[str, str] | None = None) -> int:
    process = forked(path / "home", arguments, path / "said", extra or {})
    try:
        return process.wait(timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        kill_group(process)
        raise


def _said(path: Path) -> str:
    (job,) = json.loads((path / "said.out").read_text().splitlines()[-1])["jobs"]
    return str(job["result"])


def _paid(path: Path, point: str) -> int:
    paid = path / "paid"
    return paid.read_text().splitlines().count(point) if paid.exists() else 0
