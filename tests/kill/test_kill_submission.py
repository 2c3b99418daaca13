"""A batch that comes in pages: whenever its ``run`` is killed, the same command again loses no job
and runs none twice.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kill.failpoints import SUBMISSION
from tests.kill.nursery import forked
from tests.kill.processes import DEADLINE

pytestmark = [pytest.mark.kill, pytest.mark.server, pytest.mark.slow]

JOBS, GOAL_BYTES = 12, 60_000
"""More than goes to a batch without pages: two pages."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A state directory with a jobs file; its server is gone after the test."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "policy.py").write_text(
        "def respond(messages):\n    return {'code': 'finish(1)'}\n"
    )
    (tmp_path / "items.jsonl").write_text(
        "".join(json.dumps({"n": n, "text": "x" * GOAL_BYTES}) + "\n" for n in range(JOBS))
    )
    (tmp_path / "jobs.yaml").write_text(
        "batch: pages\nconcurrency: 2\njobs:\n- id: 'j{n}'\n  for_each: items.jsonl\n"
        "  goal: '{text}'\n  workspace: ws\n  model: scripted/policy.py\n"
    )
    yield tmp_path
    forked(tmp_path, ["down"], tmp_path / "down", {}).wait(DEADLINE)


def test_no_job_is_lost_or_runs_twice(place: Path) -> None:
    """Killed while the pages are archived, before they are submitted, around the reading of a
    page, and after it was submitted again.
    """
    command = ["run", "jobs.yaml", "--json"]
    for point in SUBMISSION:
        killed = forked(place, command, place / "killed", {"HOLDFAST_FAILPOINT": point})
        assert killed.wait(DEADLINE) == -signal.SIGKILL, point
    assert forked(place, command, place / "run", {}).wait(DEADLINE) == 0
    summary = json.loads((place / "run.out").read_text().splitlines()[-1])
    assert [(job["status"], job["turns"]) for job in summary["jobs"]] == [("succeeded", 1)] * JOBS
    assert len(list((place / "archive").glob("pages/*/runs/*"))) == JOBS
    assert len(list((place / "archive").glob("_holdfast/pages/*/*"))) >= 2
