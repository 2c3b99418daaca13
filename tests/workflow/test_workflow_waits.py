"""``wait`` and ``wait_for`` in Temporal: timers, no model call, no worker slot, and whatever
happens the sleep goes on.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from stage import Stage, activities_of, events_of
from temporalio.client import WorkflowHandle
from temporalio.testing import WorkflowEnvironment
from test_workflow_strangers import timers

from runtime.base.spec.models import Budget
from runtime.job.stops import JobStatus
from tests.eventually import until_phase
from workflows.messages import JobOutcome, Note

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


async def asleep(handle: WorkflowHandle[object, JobOutcome]) -> None:
    """Waits until the job sleeps."""
    await until_phase(handle, "asleep")


async def test_a_wait_is_two_timers(stage: Stage) -> None:
    """One to fall asleep and one for the time, no activity, and the next prompt says what woke the
    job.
    """
    outcome, archive = await stage.run(["wait(1.5)", "finish(1)"])
    history = await stage.history()
    assert activities_of(history) == ["begin", "turn-1", "turn-2", "end"]
    assert len(events_of(history, "TIMER_STARTED")) == 2
    woken = archive.find_step(outcome.run, 2).interim.woken
    slept = re.fullmatch(r"slept (\d+) s; woken by the time that was set", woken)
    # Longer where it waits for a worker.
    assert slept and int(slept[1]) >= 2
    (feed,) = [s.text for s in archive.turn_layout(outcome.run, 2) if s.kind == "delta"]
    assert feed == f"[changed since the last turn]\nwait: {woken}"


async def test_a_message_wakes_a_job(stage: Stage) -> None:
    """A user need not wait until a sleeping job's time is over."""
    spec = stage.spec(["wait(86_400)", "finish(1)"], budget=Budget(wall_seconds=10**6))
    handle = await stage.start(spec)
    await asleep(handle)
    await handle.signal("message", Note.of("wake up"))
    outcome = await handle.result()
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 2)


@pytest.mark.smoke
async def test_a_change_wakes_a_job(stage: Stage) -> None:
    """Its source is read while it sleeps, in activities that are over at once."""
    path = stage.workspace / "log.txt"
    path.write_text("start\n")
    spec = stage.spec(["log = view('log.txt', freq='Sync')", "wait_for(log)", "finish(log.text)"])
    handle = await stage.start(spec)
    await asleep(handle)
    # At once: a reader would take what is half written for another change.
    changed = stage.path / "changed.txt"
    changed.write_text("start\nstop\n")
    changed.replace(path)
    outcome = await handle.result()
    archive = stage.archive(spec)
    assert archive.end(outcome.run).result == "start\nstop"
    (feed,) = [s.text for s in archive.turn_layout(outcome.run, 3) if s.kind == "delta"]
    assert "woken by a change of log\nlog: its source changed, +1 -0 lines of those shown\n" in feed


async def test_a_sleeping_job_can_be_cancelled(stage: Stage) -> None:
    """It ends as cancelled, with its end in the archive."""
    handle = await stage.start(stage.spec(["wait(3600)"]))
    await asleep(handle)
    await handle.cancel()
    outcome = await handle.result()
    assert (outcome.status, outcome.turns) == (JobStatus.CANCELLED, 1)


async def test_the_wall_budget_ends_a_sleep(stage: Stage) -> None:
    """A wait that the job asks for is its time, so it wakes when that is spent, long before the
    hour is over.
    """
    outcome, _ = await stage.run(["wait(3600)"], budget=Budget(wall_seconds=2))
    assert outcome.status is JobStatus.BUDGET
    # On a busy machine it is spent in the call before, of which it then tells.
    assert outcome.reason.partition("; turn 1: ")[0] == "the wall budget of 2 s is spent"


async def test_a_sleep_outlives_its_worker(temporal: WorkflowEnvironment, tmp_path: Path) -> None:
    """A worker that is gone while the job sleeps is not missed, and another one goes on."""
    made = Stage(temporal.client, tmp_path, "outlives")
    spec = made.spec(["foo = view('a.txt', freq=('Periodic', 60))\nwait(3)", "finish(foo.text)"])
    (made.workspace / "a.txt").write_text("one\n")
    async with made.open():
        handle = await made.start(spec)
        # On a busy machine it may be over before it is seen.
        await timers(handle, 2)
    (made.workspace / "a.txt").write_text("two\n")
    async with made.open():
        outcome = await handle.result()
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 2)
    await made.replay_all()
