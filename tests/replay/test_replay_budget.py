"""A job whose statements compute for long is never stuck in replay."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runtime.job.stops import JobStatus
from runtime.worker.worker import make_worker
from tests.replay.replays import fill_runs, turn_of
from tests.replay.timelines import archive_of, replay_runs, sound
from tests.workflow.stage import Stage

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

TURNS = 16
BUSY = "n = 0\nwhile n < 800_000:\n    n += 1\nturn += 1"
"""Some 100 ms of the interpreter, and 45 on a fast machine: all together take longer than one run
of this job may compute.
"""
LIMIT = timedelta(seconds=10)
"""Of a workflow task."""
FILLS_MS = 500
"""What fills a run: a twentieth of a task and not a quarter, for on a busy machine a replay takes
several times what it computes, and what a task does beside it takes its time too.
"""


async def test_workers_without_memory_replay_within_the_limit(
    # First, so that histories are replayed with the same figure.
    monkeypatch: pytest.MonkeyPatch,
    stage: Stage,
) -> None:
    """Each workflow task begins with a replay of the open run, and half way another worker takes
    over.
    """
    fill_runs(monkeypatch, FILLS_MS, LIMIT)
    queue = stage.queue = f"{stage.queue}-forgetful"
    spec = stage.spec(["turn = 0", *[BUSY] * TURNS, "finish(turn)"], id="job")
    handle = await stage.start(spec, LIMIT)
    archive = archive_of(stage, "job")
    async with make_worker(
        stage.client, stage.store, task_queue=queue, cached_jobs=0, grace=timedelta(0)
    ):
        await turn_of(archive, TURNS // 2)
    async with make_worker(stage.client, stage.store, task_queue=queue, cached_jobs=0):
        outcome = await handle.result()
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, TURNS + 2)
    assert len(archive.runs()) > 1
    assert sound(archive)
    await replay_runs(stage.client, stage, "job")
