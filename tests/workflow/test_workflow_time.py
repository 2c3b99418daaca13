"""Days of a job in seconds: periodic ticks and long waits on Temporal's time-skipping test
server.
"""

from __future__ import annotations

import sysconfig
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from stage import Stage, activities_of, events_of, replayer
from temporalio.testing import WorkflowEnvironment

from runtime.base.spec.models import Budget
from runtime.job.stops import JobStatus
from tests.servers.temporal_server import CONVERTER, START

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

DAY = 86_400
MONTH = Budget(turns=100, wall_seconds=31 * DAY)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def skipping() -> AsyncIterator[WorkflowEnvironment]:
    """A server whose clock jumps to the next timer when nothing else is to be done."""
    binary = Path(sysconfig.get_path("scripts")) / "temporal-test-server"
    async with await WorkflowEnvironment.start_time_skipping(
        test_server_existing_path=str(binary),
        test_server_startup_timeout=START,
        data_converter=CONVERTER,
    ) as environment:
        yield environment


@pytest_asyncio.fixture(loop_scope="session")
async def long_stage(
    skipping: WorkflowEnvironment, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Stage]:
    """A worker on that server; what it did is replayed, as on any other."""
    made = Stage(skipping.client, tmp_path, request.node.name)
    async with made.open():
        yield made
    for workflow_id in made.started:
        for run in made.runs(workflow_id):
            handle = skipping.client.get_workflow_handle(workflow_id, run_id=run)
            await replayer().replay_workflow(await handle.fetch_history())
    made.check_prompts()


async def test_a_wait_of_a_week_is_two_timers(long_stage: Stage) -> None:
    """One to fall asleep and one for seven days; two turns, and not one activity between them."""
    outcome, archive = await long_stage.run([f"wait({7 * DAY})", "finish(1)"], budget=MONTH)
    assert outcome.status is JobStatus.SUCCEEDED
    woken = archive.find_step(outcome.run, 2).interim.woken
    # A few seconds more where a worker is slow.
    assert woken.startswith("slept 604,8")
    assert woken.endswith(" s; woken by the time that was set")
    history = await long_stage.history()
    assert activities_of(history) == ["begin", "turn-1", "turn-2", "end"]
    assert len(events_of(history, "TIMER_STARTED")) == 2


async def test_periodic_ticks_go_on_through_a_wait_of_days(long_stage: Stage) -> None:
    """An hourly view is read some 72 times in three days, though nothing changes; the archive holds
    none of these readings.
    """
    (long_stage.workspace / "log.txt").write_text("one\n")
    outcome, archive = await long_stage.run(
        [f"log = view('log.txt', freq=('Periodic', 3600))\nwait({3 * DAY})", "finish(log.text)"],
        budget=MONTH,
    )
    assert archive.end(outcome.run).result == "one"
    looks = [
        name
        for name in activities_of(await long_stage.history())
        if name.startswith("turn-1-asleep-")
    ]
    assert 70 <= len(looks) <= 73
    assert archive.find_step(outcome.run, 2).interim.ticks == ()


async def test_a_wait_for_a_change_that_never_comes_times_out(long_stage: Stage) -> None:
    """It looks ever more seldom, every five minutes at most, and its runs stay short: it goes on in
    others.
    """
    (long_stage.workspace / "log.txt").write_text("one\n")
    outcome, archive = await long_stage.run(
        ["log = view('log.txt', freq='Sync')", f"wait_for(log, timeout={DAY})", "finish(log.text)"],
        budget=MONTH,
    )
    assert archive.end(outcome.run).result == "one"
    woken = archive.find_step(outcome.run, 3).interim.woken
    assert woken.startswith("slept 86,4")
    assert woken.endswith(" s; woken by the timeout")
    looks = [name for name in activities_of(await long_stage.history()) if "-asleep-" in name]
    assert 280 <= len(looks) <= 400


async def test_the_wall_budget_ends_a_wait_of_days(long_stage: Stage) -> None:
    """To the second."""
    outcome, _ = await long_stage.run([f"wait({30 * DAY})"], budget=Budget(wall_seconds=2 * DAY))
    assert (outcome.status, outcome.reason) == (
        JobStatus.BUDGET,
        f"the wall budget of {2 * DAY} s is spent",
    )


async def test_a_deadline_ends_a_wait_of_days(long_stage: Stage) -> None:
    """A sleeping job wakes for it."""
    outcome, _ = await long_stage.run(
        [f"wait({30 * DAY})"], budget=Budget(wall_seconds=60 * DAY, deadline=2.0 * DAY)
    )
    assert (outcome.status, outcome.reason) == (
        JobStatus.BUDGET,
        "the deadline (2d after the job's start) has passed",
    )
