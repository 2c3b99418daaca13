"""A tool that kills the worker which calls it, each time: it ends its own job, and no other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.worker.presence import MOST_DEATHS
from tests.kill.nursery import forked
from tests.kill.processes import DEADLINE

pytestmark = [pytest.mark.kill, pytest.mark.slow]

TOOLS = """
import os
import signal
import time
from pathlib import Path

KILLED = Path(__file__).with_name("killed")

def kill() -> None:
    with KILLED.open("a") as killed:
        killed.write("x")
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)

def kill_once() -> int:
    if not KILLED.exists():
        kill()
    return 1

def stay() -> int:
    # Longer than a worker lives: it dies with each of the first ones.
    while not KILLED.exists() or len(KILLED.read_text()) < 5:
        time.sleep(0.1)
    return 1
"""
JOBS = """
batch: deadly
defaults: {workspace: ws}
jobs:
- {id: killer, goal: g, model: scripted/killer.json, tools: ["deadly:kill"]}
- {id: "long-{n}", goal: g, count: 2, model: scripted/long.json, tools: ["deadly:stay"]}
- {id: "brief-{n}", goal: g, count: 4, model: scripted/brief.json}
"""
ONE = """
batch: one
jobs: [{id: killer, workspace: ws, goal: g, model: scripted/killer.json, tools: ["deadly:kill_once"]}]
"""
SCRIPTS = {
    "killer": ["kill()", "finish(0)"],
    "long": ["x = stay()", "finish(x)"],
    "brief": ["x = 1", "finish(x)"],
}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A state directory with a batch; its server is gone after the test."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "deadly.py").write_text(TOOLS)
    (tmp_path / "jobs.yaml").write_text(JOBS)
    for name, statements in SCRIPTS.items():
        (tmp_path / f"{name}.json").write_text(json.dumps([{"code": code} for code in statements]))
    yield tmp_path
    forked(tmp_path, ["down"], tmp_path / "down", {}).wait(DEADLINE)


def test_a_tool_that_kills_its_workers_ends_its_own_job(place: Path) -> None:
    """``run`` outlives its workers, and tells how all jobs end: those whose calls died with the
    killer's succeed.
    """
    run = forked(place, ["run", "jobs.yaml", "--workers", "2", "--json"], place / "run", {})
    assert run.wait(1700) == 1
    summary = json.loads((place / "run.out").read_text().splitlines()[-1])
    ended = {
        job["id"]: (job["status"], job["reason"].partition(" workers")[0])
        for job in summary["jobs"]
    }
    deaths = ended.pop("killer")
    innocent = ["long-1", "long-2", *(f"brief-{n}" for n in range(1, 5))]
    assert ended == dict.fromkeys(innocent, ("succeeded", "finished"))
    assert deaths[0] == "failed"
    assert int(deaths[1].removeprefix("turn 1: WorkerKilled: ")) >= MOST_DEATHS


def test_a_run_of_one_job_outlives_the_worker_that_a_tool_kills(place: Path) -> None:
    """Nobody asked for workers apart: that a job calls a tool is enough. Another worker makes the
    call again.
    """
    (place / "killer.json").write_text('[{"code": "x = kill_once()"}, {"code": "finish(x)"}]')
    (place / "jobs.yaml").write_text(ONE)
    run = forked(place, ["run", "jobs.yaml", "--json"], place / "run", {})
    assert run.wait(DEADLINE) == 0
    job = json.loads((place / "run.out").read_text().splitlines()[-1])["jobs"][0]
    assert (job["status"], job["turns"], job["result"]) == ("succeeded", 2, 1)
    assert (place / "killed").read_text() == "x"
