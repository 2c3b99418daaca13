"""A job that starts others: whenever its worker is killed, each is started once."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.archive.job import JobArchive
from runtime.archive.stores import open_store
from tests.kill.failpoints import SUB_JOBS
from tests.kill.nursery import forked
from tests.kill.processes import DEADLINE

pytestmark = [pytest.mark.kill, pytest.mark.server, pytest.mark.slow]

SCRIPT = [
    "a = spawn('One.'); b = spawn('Two.'); c = spawn('Two.')",
    "wait_for(a)",
    "wait_for(b)",
    "wait_for(c)",
    "finish([one.text for one in (a, b, c)])",
]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A state directory with a jobs file; its server is gone after the test."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "parent.json").write_text(json.dumps([{"code": code} for code in SCRIPT]))
    (tmp_path / "child.json").write_text(json.dumps([{"code": "x = 1"}, {"code": "finish(x)"}]))
    (tmp_path / "jobs.yaml").write_text(
        "batch: family\njobs:\n- id: parent\n  goal: Have it done.\n  workspace: ws\n"
        "  model: scripted/parent.json\n"
        "  spawn: {max: 3, turns: 5, model: scripted/child.json}\n"
    )
    yield tmp_path
    forked(tmp_path, ["down"], tmp_path / "down", {}).wait(DEADLINE)


def test_no_sub_job_is_started_twice(place: Path) -> None:
    """Killed before one is started, between the start and its record, and after the record."""
    command = ["run", "jobs.yaml", "--json"]
    for point in SUB_JOBS:
        killed = forked(place, command, place / "killed", {"HOLDFAST_FAILPOINT": point})
        assert killed.wait(DEADLINE) == -signal.SIGKILL, point
    assert forked(place, command, place / "run", {}).wait(DEADLINE) == 0
    [job] = json.loads((place / "run.out").read_text().splitlines()[-1])["jobs"]
    assert (job["status"], job["turns"]) == ("succeeded", 5)
    assert all(
        text.startswith("# Status\n\nsucceeded: finished, 2 turns") for text in job["result"]
    )
    store = open_store(str(place / "archive"))
    names = {key.split("/")[1] for key in store.list("family/")} - {"parent"}
    children = [JobArchive(store, "family", name) for name in sorted(names)]
    assert [len(child.runs()) for child in children] == [1, 1, 1]
    assert [len(list(child.steps(child.runs()[0]))) for child in children] == [2, 2, 2]
