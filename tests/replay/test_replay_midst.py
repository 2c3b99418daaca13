"""Forks of a job whose last statement is in the midst of an effect."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHandle

from activities.record import RunName
from runtime.archive.job import JobArchive
from runtime.archive.recorded import replied_at
from runtime.archive.verify import damage, verify_job
from runtime.base.spec.models import Budget, ToolSpec
from runtime.client.resets import outcome_of_reset
from runtime.job.stops import JobStatus
from runtime.tools.host import describe_tool
from tests.eventually import eventually, until_phase
from tests.gated_tools import TOOLS
from tests.replay.replays import fork_job, reexecution, replayed, rerun
from tests.workflow.stage import Stage
from workflows.messages import Note

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

PAYS = """
got = look('first')
try:
    got += pay('ann')
except OutcomeUnknown:
    got += ' unknown'
"""


def _tools(stage: Stage) -> tuple[ToolSpec, ...]:
    (stage.path / "midst_tools.py").write_text(TOOLS)
    return tuple(describe_tool(f"midst_tools:{name}", str(stage.path)) for name in ("pay", "look"))


def _ran(path: Path) -> list[str]:
    return (path / "ran").read_text().split() if (path / "ran").exists() else []


def _newest(stage: Stage, archive: JobArchive) -> RunName:
    return RunName(batch=stage.batch, job=archive.job.job, run=archive.runs()[-1])


async def _timers(handle: WorkflowHandle[Any, Any]) -> list[float]:
    """The seconds of each timer of a run."""
    started = [
        event.timer_started_event_attributes.start_to_fire_timeout
        for event in (await handle.fetch_history()).events
        if event.event_type == EventType.EVENT_TYPE_TIMER_STARTED
    ]
    return [one.ToTimedelta().total_seconds() for one in started]


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_fork_goes_on_with_the_statement(stage: Stage, cancelled: bool) -> None:
    """What the statement did is not done again, what was under way is as its tool says; the job
    that it is a fork of is left as it is. The fork's own record is executed again as it is.
    """
    spec = stage.spec(["x = 1", PAYS, "finish(got)"], id="job", tools=_tools(stage))
    handle = await stage.start(spec)
    archive = stage.archive(spec)
    await eventually(lambda: len(_ran(stage.path)) == 2, "the call")
    if cancelled:
        await handle.cancel()
        assert (await handle.result()).status is JobStatus.CANCELLED
    source = _newest(stage, archive)
    made = await fork_job(
        stage, source, 3, "fork", rerun(stage, "job", source.run, 3, message="go on")
    )
    forked = await outcome_of_reset(stage.client, made)
    assert (forked.status, forked.turns) == (JobStatus.SUCCEEDED, 3)
    other = JobArchive(stage.store, stage.batch, "fork")
    assert other.end(forked.run).result == "first unknown"
    assert _ran(stage.path) == ["first", "ann"]
    if not cancelled:
        (stage.path / "gate").write_text("")
        assert (await handle.result()).status is JobStatus.SUCCEEDED
        assert archive.end(source.run).result == "firstann"
    for one in (archive, other):
        assert list(damage(verify_job(one))) == []
    again, differences = await replayed(
        stage, "fork", reexecution(stage, "fork", forked.run, 2, frozen=True)
    )
    assert (again.status, differences) == (JobStatus.SUCCEEDED, [])
    if cancelled:
        # What the statement would have come to is not known, and so no difference.
        order = reexecution(stage, "job", source.run, 1, frozen=True)
        again, differences = await replayed(stage, "job", order)
        assert (again.status, again.turns, differences) == (JobStatus.CANCELLED, 2, [])


async def test_a_fork_of_a_job_that_sleeps_sleeps_the_rest(stage: Stage) -> None:
    """Its sleep counts from the same moment, and what has passed until the fork began is over."""
    long = 600
    budget = Budget(wall_seconds=2 * long)
    spec = stage.spec(["x = 1", f"wait({long})", "finish(x)"], id="job", budget=budget)
    handle = await stage.start(spec)
    archive = stage.archive(spec)
    await until_phase(handle, "asleep")
    asked = replied_at(archive.find_step(archive.runs()[-1], 2))
    await eventually(lambda: time.time() > asked + 2, "some of the sleep is over")
    source = _newest(stage, archive)
    made = await fork_job(stage, source, 3, "fork", rerun(stage, "job", source.run, 3))
    forked = stage.client.get_workflow_handle(stage.started[-1])
    began = (await forked.describe()).start_time.timestamp()
    slept: list[float] = []

    async def asleep() -> bool:
        # Behind the one with which a job falls asleep, see ``Asleep``.
        slept[:] = (await _timers(forked))[1:]
        return bool(slept)

    await eventually(asleep, "the fork sleeps")
    assert slept[0] <= long - (began - asked)
    for one in (handle, forked):
        await one.signal("message", Note.of("Wake up."))
    assert (await handle.result()).status is JobStatus.SUCCEEDED
    outcome = await outcome_of_reset(stage.client, made)
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 3)
