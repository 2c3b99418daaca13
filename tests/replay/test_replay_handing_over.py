"""What arrives while a job hands over to its next run."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHandle

from runtime.archive.job import JobArchive
from runtime.job.stops import JobStatus
from runtime.worker.worker import make_worker
from tests.eventually import eventually
from tests.held_store import HeldStore
from tests.replay.replays import BUSY, fill_runs
from tests.replay.timelines import archive_of, replay_runs
from tests.workflow.stage import Stage
from workflows.messages import Note

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


LIMIT = timedelta(seconds=10)
"""Of a workflow task. It is begun anew when four fifths of it are over, and on a busy machine two
seconds leave too little for that.
"""
FILLS_MS = 500
"""What fills a run: less than the job computes on any machine."""


async def test_a_message_that_comes_while_a_run_hands_over(
    # First, so that histories are replayed with the same figure.
    monkeypatch: pytest.MonkeyPatch,
    stage: Stage,
) -> None:
    """What arrives while the checkpoint is written, with which a run ends, is read in the next: in
    order, once.
    """
    fill_runs(monkeypatch, FILLS_MS, LIMIT)
    store = HeldStore(stage.store, lambda key: key.endswith(".checkpoint"))
    queue = stage.queue = f"{stage.queue}-held"
    spec = stage.spec(["turn = 1", *[BUSY] * 30, "finish(turn)"], id="job")
    async with make_worker(stage.client, store, task_queue=queue):
        handle = await stage.start(spec, LIMIT)
        await eventually(store.reached.is_set, "the first run ends")
        history = await _extended(handle)
        for text in ("one", "two"):
            await handle.signal("message", Note.of(text))
        # The task that waits for the checkpoint is begun anew before its time is over, now with the
        # messages.
        await _extended(handle, after=history)
        store.let_go.set()
        outcome = await handle.result()
    archive = archive_of(stage, "job")
    assert outcome.status is JobStatus.SUCCEEDED
    assert len(archive.runs()) > 1
    first = next(step.turn for step in archive.steps(outcome.run) if step.run != archive.runs()[0])
    assert _shown(archive, outcome.run, first - 1) == []
    assert _shown(archive, outcome.run, first) == ["one", "two"]
    assert _shown(archive, outcome.run, outcome.turns) == ["one", "two"]
    assert await replay_runs(stage.client, stage, "job") == len(archive.runs())


def _shown(archive: JobArchive, run: str, turn: int) -> list[str]:
    return [segment.text for segment in archive.turn_layout(run, turn) if segment.kind == "message"]


async def _extended(handle: WorkflowHandle[Any, Any], after: int = 0) -> int:
    """Wait until a workflow task has started behind event ``after``; returns its event id."""
    async with asyncio.timeout(200):
        while True:
            history = await handle.fetch_history()
            last = history.events[-1]
            if (
                last.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED
                and last.event_id > after
            ):
                return last.event_id
            await asyncio.sleep(0.05)
