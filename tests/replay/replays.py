"""Resetting and forking the jobs of a stage, and what came of it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHandle

from activities.record import ReplayMode, ReplayOrder, RunName
from runtime.archive.divergences import divergences
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore
from runtime.base.spec.models import JobSpec
from runtime.base.values import JobKey
from runtime.base.workflow_ids import job_workflow_id
from runtime.client.forks import ForkPoint, forks
from runtime.client.resets import Reset, outcome_of_reset, reset
from runtime.job.divergence import Divergence
from runtime.job.stops import JobStatus
from tests.replay.timelines import archive_of
from tests.workflow.stage import Stage, events_of
from workflows import continuing
from workflows.job import JobWorkflow
from workflows.messages import JobOrder, JobOutcome, Origin

BUSY = "n = 0\nwhile n < 500_000:\n    n += 1\nprint(turn)\nturn += 1"
"""A statement that takes some 50 to 100 ms of the interpreter."""

_HELD = """
import time
from pathlib import Path

def respond(messages):
    turn = sum(message["role"] == "assistant" for message in messages) + 1
    while turn == {turn} and not Path({gate!r}).exists():
        time.sleep(0.02)
    return {replies!r}[turn - 1]
"""


def held(stage: Stage, replies: Sequence[Any], turn: int) -> tuple[str, Path]:
    """A scripted model that gives ``replies`` in order, and the file before which it does not give
    that of ``turn``: until then the job does not end, however long a test takes.
    """
    gate = stage.path / "held.gate"
    listed = [reply if isinstance(reply, dict) else {"code": reply} for reply in replies]
    path = stage.path / "held.py"
    path.write_text(_HELD.format(turn=turn, gate=str(gate), replies=listed))
    return f"scripted/{path}", gate


async def prepared(handle: WorkflowHandle[Any, Any]) -> bool:
    """Whether a job has begun something in the background, and all of that has ended."""
    history = await handle.fetch_history()
    begun = {
        event.event_id
        for event in events_of(history, "ACTIVITY_TASK_SCHEDULED")
        if event.activity_task_scheduled_event_attributes.activity_id.startswith("payload-")
    }
    ended = {
        event.activity_task_completed_event_attributes.scheduled_event_id
        for event in events_of(history, "ACTIVITY_TASK_COMPLETED")
    }
    return bool(begun) and begun <= ended


def fill_runs(patch: pytest.MonkeyPatch, after_ms: int, limit: timedelta) -> None:
    """Have runs be full when their statements have computed so long, whose workflow tasks have that
    limit. Asked for before the stage, it holds too while that replays what it did.
    """
    patch.setattr(continuing, "REPLAY_SHARE", limit.total_seconds() * 1000 / after_ms)


def reexecution(stage: Stage, job: str, run: str, start: int, **fields: Any) -> ReplayOrder:
    """The order to execute the statements of ``run`` from ``start`` on again."""
    source = RunName(batch=stage.batch, job=job, run=run)
    return ReplayOrder(
        **{
            "id": uuid.uuid4().hex,
            "start": start,
            "mode": ReplayMode.REEXECUTE,
            "source": source,
            **fields,
        }
    )


def rerun(stage: Stage, job: str, run: str, start: int, **fields: Any) -> ReplayOrder:
    """The order to ask the model anew from statement ``start`` on."""
    return reexecution(stage, job, run, start, **{"mode": ReplayMode.RERUN, **fields})


async def reset_job(stage: Stage, job: str, order: ReplayOrder) -> Reset:
    """Reset one of the stage's jobs."""
    return await reset(stage.client, stage.store, JobKey(batch=stage.batch, job=job), order)


async def replayed(
    stage: Stage, job: str, order: ReplayOrder
) -> tuple[JobOutcome, list[Divergence]]:
    """Reset a job, and wait for the end of the run that this makes."""
    outcome = await outcome_of_reset(stage.client, await reset_job(stage, job, order))
    return outcome, divergences(archive_of(stage, job), outcome.run)


async def frozen_again(stage: Stage, spec: JobSpec, run: str) -> tuple[JobOutcome, JobArchive]:
    """Execute a whole record again as the job ``again``, answered from it."""
    order = reexecution(stage, spec.id, run, 1, frozen=True)
    key = JobKey(batch=stage.batch, job="again")
    again = await stage.client.execute_workflow(
        JobWorkflow.run,
        JobOrder(
            key=key,
            spec=spec,
            definition="",
            origin=Origin(seed=f"{stage.batch}/{spec.id}", replay=order),
        ),
        id=job_workflow_id(key),
        task_queue=stage.queue,
    )
    return again, archive_of(stage, "again")


async def fork_job(
    stage: Stage,
    source: RunName,
    turn: int,
    name: str,
    order: ReplayOrder,
    *,
    store: ObjectStore | None = None,
) -> Reset:
    """Fork one of the stage's jobs, as the command does that sees the stage's store or ``store``,
    and have its history replayed at the test's end.
    """
    (made,) = await forks(
        stage.client, store or stage.store, ForkPoint(source, turn), {name: order}, stage.queue
    )
    stage.started.append(job_workflow_id(made.key))
    return made


async def follows_its_record(stage: Stage, job: str, outcome: JobOutcome, turns: int) -> None:
    """See that a job that succeeded after ``turns`` does so executed again, frozen and without a
    divergence, and as a fork that restores all but its last turn.
    """
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, turns)
    order = reexecution(stage, job, outcome.run, 1, frozen=True)
    again, differs = await replayed(stage, job, order)
    assert (again.status, again.turns, differs) == (JobStatus.SUCCEEDED, turns, [])
    source = RunName(batch=stage.batch, job=job, run=outcome.run)
    order = rerun(stage, job, outcome.run, turns)
    forked = await fork_job(stage, source, turns, "fork", order)
    ended = await outcome_of_reset(stage.client, forked)
    assert (ended.status, ended.turns) == (JobStatus.SUCCEEDED, turns)


async def turn_of(archive: JobArchive, turn: int) -> None:
    """Wait until a job has finished a turn in its newest run, or in one that this goes on from."""
    async with asyncio.timeout(200):
        while not archive.runs() or archive.find_step(archive.runs()[-1], turn) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
