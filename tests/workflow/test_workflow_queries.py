"""A job that is asked for its progress all the time, sent messages and cancelled: what it saw when,
a replay sees too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio import activity
from temporalio.client import WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import WorkflowEnvironment

from activities.verdicts import RecordedVerdict, record_verdict
from runtime.base.values import JobKey
from runtime.base.workflow_ids import job_workflow_id
from runtime.job.stops import JobStatus
from runtime.worker import parts
from tests.eventually import SECONDS, eventually, progress_of
from tests.workflow.stage import Stage, events_of
from workflows import job
from workflows.continuing import Run
from workflows.job import JobWorkflow
from workflows.messages import JobOutcome, Note

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

TURNS = 12
QUERIES = 8
"""Beside one task: a worker that comes begins with one of them, most times."""

Handle = WorkflowHandle[JobWorkflow, JobOutcome]


async def ask_once(handle: Handle) -> int:
    """The turn at which the job is; 0 where too many queries wait for the worker already."""
    told = await progress_of(handle)
    return 0 if told is None else int(told["turn"])


async def ask_until(handle: Handle, ended: asyncio.Task[JobOutcome]) -> None:
    """Query the job all the time."""
    while not ended.done():
        await ask_once(handle)


async def all_are_cancelled(stage: Stage, handles: Iterable[Handle]) -> None:
    """Each job ends so, is queried until then, and replays."""
    async with stage.open():
        ended = {handle: asyncio.create_task(handle.result()) for handle in handles}
        asking = [asyncio.create_task(ask_until(*one)) for one in ended.items() for _ in range(3)]
        for outcome in ended.values():
            assert (await outcome).status is JobStatus.CANCELLED
        await asyncio.gather(*asking)
    await stage.replay_all()


async def test_a_job_that_is_queried_replays(stage: Stage) -> None:
    """Queries are answered while verdicts are recorded; neither times nor the order of messages
    depend on it.
    """
    (stage.workspace / "log.txt").write_text("one\n")
    naps = [f"n = sum(range({10_000 * turn}))\nwait(0.05)" for turn in range(TURNS)]
    spec = stage.spec(
        [
            "p = view('log.txt', freq=('Periodic', 0.05))\na = view('log.txt', freq='Async')",
            *naps,
            "finish(n)",
        ]
    )
    handle = await stage.start(spec, timedelta(seconds=10))
    ended = asyncio.create_task(handle.result())

    async def send() -> int:
        sent = 0
        while not ended.done():
            try:
                await handle.signal("message", Note.of(f"message {sent}"))
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
                break
            sent += 1
            await ask_once(handle)
        return sent

    *_, sent = await asyncio.gather(*(ask_until(handle, ended) for _ in range(3)), send())
    outcome = await ended
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, TURNS + 2)
    assert sent > 0


async def test_a_job_that_is_asked_between_two_tasks_replays(
    temporal: WorkflowEnvironment, tmp_path: Path
) -> None:
    """It slept while no worker was there, and one that comes begins with a query: the job goes on
    at the time of its next task.
    """
    stage = Stage(temporal.client, tmp_path, "asked-between")

    async def timers(kind: str, number: int) -> bool:
        return len(events_of(await stage.history(), f"TIMER_{kind}")) == number

    async with stage.open():
        handle = await stage.start(stage.spec(["wait(2)", "finish(1)"]), timedelta(seconds=2))
        # Behind the one with which a job falls asleep.
        await eventually(lambda: timers("STARTED", 2), "the job sleeps")
    asking = [
        asyncio.create_task(handle.query("progress", rpc_timeout=timedelta(seconds=10)))
        for _ in range(QUERIES)
    ]
    await eventually(lambda: timers("FIRED", 2), "the end of the sleep")
    async with stage.open():
        await asyncio.gather(*asking, return_exceptions=True)
        assert (await handle.result()).status is JobStatus.SUCCEEDED
    assert await timers("STARTED", 2)
    await stage.replay_all()


@pytest.mark.parametrize("checkpoint_turns", [1, 1_000])
async def test_jobs_that_are_queried_and_cancelled_replay(
    temporal: WorkflowEnvironment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    checkpoint_turns: int,
) -> None:
    """A cancel that comes in while a verdict is recorded takes the same effect in a replay, which
    may have that verdict before it, and come to a checkpoint, or to the next call.
    """
    monkeypatch.setattr(job, "CHECKPOINT_TURNS", checkpoint_turns)
    handles: dict[str | None, Handle] = {}
    verdicts_left: dict[str | None, int] = {}

    @activity.defn(name="record_verdict")
    async def cancelling(verdict: RecordedVerdict | None) -> RecordedVerdict | None:
        id = activity.info().workflow_id
        verdicts_left[id] -= 1
        if verdicts_left[id] == 0:
            await handles[id].cancel()
        return await record_verdict(verdict)

    monkeypatch.setattr(parts, "record_verdict", cancelling)
    stage = Stage(temporal.client, tmp_path, "queried-and-cancelled")
    # Of ten jobs, a query cuts that task of some four.
    for number in range(10):
        spec = stage.spec(["n = sum(range(60_000))"] * 50)
        verdicts_left[job_workflow_id(JobKey(batch=stage.batch, job=spec.id))] = 2 + number
        handle = await stage.start(spec)
        handles[handle.id] = handle
    await all_are_cancelled(stage, handles.values())


async def test_jobs_that_are_cancelled_as_they_go_on_in_another_run_replay(
    temporal: WorkflowEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancel that comes in while the checkpoint is archived takes the same effect in a replay,
    which may have that before it.
    """
    monkeypatch.setattr(Run, "is_full", lambda run, limit: True)
    loop = asyncio.get_running_loop()
    handles: dict[str, Handle] = {}
    stage = Stage(temporal.client, tmp_path, "cancelled-between-runs")
    put = stage.store.put_if_absent

    def cancelling(key: str, data: bytes) -> bool:
        if key.endswith(".checkpoint"):
            name = next(name for name in handles if f"/{name}/" in key)
            asyncio.run_coroutine_threadsafe(handles[name].cancel(), loop).result(SECONDS)
        return put(key, data)

    monkeypatch.setattr(stage.store, "put_if_absent", cancelling)
    for number in range(10):
        spec = stage.spec([f"n = sum(range({10_000 * number}))"] * 2)
        handles[spec.id] = await stage.start(spec)
    await all_are_cancelled(stage, handles.values())
