"""Replays and the clock: time between a job and its replay is nobody's, and what a record answers
no time ends.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory

from activities.record import AfterRecord, RunName
from runtime.base.spec.models import Budget
from runtime.base.workflow_ids import job_workflow_id
from runtime.client.resets import outcome_of_reset
from runtime.job.stops import JobStatus
from tests.replay.replays import follows_its_record, fork_job, reexecution, replayed, rerun
from tests.replay.timelines import archive_of, replay_runs, sound
from tests.workflow.stage import Stage, replayer
from workflows.job import JobWorkflow
from workflows.messages import JobOutcome

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

GONE = "2026-01-01T08:00:00+00:00"
PASSED = f"the deadline ({GONE}) has passed"
STATEMENTS = [
    "a = view('a.txt', freq='Sync')",
    "n = len(open('a.txt').read())",
    "wait(0.1)",
    "finish(n)",
]


async def _ran(
    stage: Stage, budget: Budget | None = None, statements: list[str] = STATEMENTS
) -> str:
    """The run of a job with readings, a file call and a sleep."""
    (stage.workspace / "a.txt").write_text("one\n")
    outcome, _ = await stage.run(statements, id="job", budget=budget or Budget())
    assert outcome.status is JobStatus.SUCCEEDED
    return outcome.run


async def test_no_time_ends_what_is_answered_from_a_record(stage: Stage) -> None:
    """A deadline that has passed since, and no time at all to work: the frozen record is executed
    again to its end.
    """
    first = await _ran(stage)
    for budget in (Budget(deadline=GONE), Budget(wall_seconds=0.001), Budget(deadline=0.001)):
        for start in (1, 3):
            order = reexecution(stage, "job", first, start, frozen=True, budget=budget)
            frozen, found = await replayed(stage, "job", order)
            assert ([one.line() for one in found], frozen.status, frozen.turns) == (
                [],
                JobStatus.SUCCEEDED,
                4,
            )
    assert sound(archive_of(stage, "job"))
    await replay_runs(stage.client, stage, "job")


async def test_time_counts_where_the_record_does_not_answer(stage: Stage) -> None:
    """A rerun, a fork whose turns are restored, and a frozen record that goes on behind its end:
    each ends as its deadline says.
    """
    (stage.workspace / "a.txt").write_text("one\n")
    first, _ = await stage.run([*STATEMENTS[:3], "n"], id="job", turns=4)
    assert first.status is JobStatus.BUDGET
    source = RunName(batch=stage.batch, job="job", run=first.run)
    over = Budget(deadline=GONE)
    again, _ = await replayed(stage, "job", rerun(stage, "job", first.run, 3, budget=over))
    assert (again.status, again.reason) == (JobStatus.BUDGET, PASSED)
    assert archive_of(stage, "job").find_step(again.run, 3) is None
    order = rerun(stage, "job", first.run, 3, budget=over)
    forked = await outcome_of_reset(stage.client, await fork_job(stage, source, 3, "forked", order))
    assert (forked.status, forked.turns, forked.reason) == (JobStatus.BUDGET, 2, PASSED)
    order = reexecution(
        stage, "job", first.run, 2, frozen=True, then=AfterRecord.CONTINUE, budget=over
    )
    on, found = await replayed(stage, "job", order)
    assert ([one.line() for one in found], on.status, on.turns, on.reason) == (
        [],
        JobStatus.BUDGET,
        4,
        PASSED,
    )
    await replay_runs(stage.client, stage, "job")


def _reset_days_later(history: WorkflowHistory, days: int) -> WorkflowHistory:
    """The history of a run that was reset so long after the record."""
    later = False
    for event in history.events:
        later |= event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
        if later:
            event.event_time.FromDatetime(event.event_time.ToDatetime() + timedelta(days=days))
    assert later
    return history


@pytest.mark.parametrize(
    "statements", [STATEMENTS, ["n = 1", "wait(0.1)", "finish(n)"]], ids=["a-call", "a-sleep"]
)
async def test_a_deadline_after_the_start_goes_on_from_where_it_stood(
    stage: Stage, statements: list[str]
) -> None:
    """A job of a day that is taken back the next week, to behind a call or a sleep, has what it had
    left there, of its time as of its wall budget.
    """
    first = await _ran(stage, Budget(wall_seconds=3600, deadline=86_400.0), statements)
    again, _ = await replayed(stage, "job", rerun(stage, "job", first, 3))
    assert (again.status, again.turns) == (JobStatus.SUCCEEDED, len(statements))
    handle = stage.client.get_workflow_handle(stage.started[0], run_id=again.run)
    await replayer().replay_workflow(_reset_days_later(await handle.fetch_history(), 7))


async def _under(stage: Stage, until: datetime) -> JobOutcome:
    """The outcome of a job of a batch whose time is over then."""
    order = stage.order(STATEMENTS, id="job").model_copy(update={"until": until.isoformat()})
    stage.started.append(job_workflow_id(order.key))
    handle = await stage.client.start_workflow(
        JobWorkflow.run, order, id=stage.started[-1], task_queue=stage.queue
    )
    return await handle.result()


async def test_a_batchs_time_that_is_over_goes_on_from_where_it_stood(stage: Stage) -> None:
    """A job whose batch had a day has what it had left of that, taken back the next week."""
    (stage.workspace / "a.txt").write_text("one\n")
    first = await _under(stage, datetime.now(UTC) + timedelta(days=1))
    assert first.status is JobStatus.SUCCEEDED
    again, _ = await replayed(stage, "job", rerun(stage, "job", first.run, 3))
    assert (again.status, again.turns) == (JobStatus.SUCCEEDED, len(STATEMENTS))
    handle = stage.client.get_workflow_handle(stage.started[0], run_id=again.run)
    await replayer().replay_workflow(_reset_days_later(await handle.fetch_history(), 7))


async def test_a_job_that_its_batchs_time_ended_goes_on_by_another_deadline(stage: Stage) -> None:
    """Of which the replay is told; without, it has nothing left of that time."""
    (stage.workspace / "a.txt").write_text("one\n")
    first = await _under(stage, datetime.fromisoformat(GONE))
    over = f"the time of the batch's budget is over (since {GONE})"
    assert (first.status, first.reason) == (JobStatus.BUDGET, over)
    again, _ = await replayed(stage, "job", rerun(stage, "job", first.run, 1))
    assert again.status is JobStatus.BUDGET
    order = rerun(stage, "job", again.run, 1, budget=Budget(deadline=86_400.0))
    on, _ = await replayed(stage, "job", order)
    assert (on.status, on.turns) == (JobStatus.SUCCEEDED, len(STATEMENTS))
    await replay_runs(stage.client, stage, "job")


async def test_a_record_is_followed_behind_a_sleep(stage: Stage) -> None:
    """A frozen replay of the turn after one, next week: the view that is due by then is not read,
    and the job slept as it did.
    """
    (stage.workspace / "a.txt").write_text("one\n")
    first, archive = await stage.run(
        ["p = view('a.txt', freq=('Periodic', 3600))", "wait(0.1)", "finish(p.text)"], id="job"
    )
    order = reexecution(stage, "job", first.run, 3, frozen=True)
    again, found = await replayed(stage, "job", order)
    assert ([one.line() for one in found], again.status, again.turns) == (
        [],
        JobStatus.SUCCEEDED,
        3,
    )
    was, now = (archive.find_step(run, 3) for run in (first.run, again.run))
    assert was is not None
    assert now is not None
    assert now.interim == was.interim
    handle = stage.client.get_workflow_handle(stage.started[0], run_id=again.run)
    await replayer().replay_workflow(_reset_days_later(await handle.fetch_history(), 7))


async def test_a_group_that_waits_for_its_interval_is_recomputed_when_it_was(
    stage: Stage,
) -> None:
    """A record tells the times of its ticks also where no view, but a group, goes by them."""
    (stage.workspace / "a.txt").write_text("".join(f"line {n}\n" for n in range(40)))
    replies = [
        "a = view('a.txt', tokens=40)\ng = group(a, lod=0).Run(freq=('Periodic', 5))",
        "a.SetPos(10)",
        "a.SetPos(30)\nwait(6)",
        "finish(g.text)",
    ]
    outcome, archive = await stage.run(replies, id="job")
    assert "line 30" in archive.end(outcome.run).result, "it was due by then"
    await follows_its_record(stage, "job", outcome, 4)


async def test_a_frozen_replay_of_a_frozen_replay_has_the_same_clock(stage: Stage) -> None:
    """The statement's time is the first record's, through any number of replays, and so is that of
    one that a user wrote in its place.
    """
    told = "from datetime import datetime\nt = datetime.now().isoformat()"
    first, archive = await stage.run([told, "finish(t)"], id="job")
    result = archive.end(first.run).result
    for start in (1, 1, 2):
        order = reexecution(stage, "job", archive.runs()[-1], start, frozen=True)
        again, found = await replayed(stage, "job", order)
        assert ([one.line() for one in found], archive.end(again.run).result) == ([], result)
    order = reexecution(stage, "job", again.run, 1, frozen=True, statement=f"{told}[:-1]")
    edited, _ = await replayed(stage, "job", order)
    order = reexecution(stage, "job", edited.run, 1, frozen=True)
    again, found = await replayed(stage, "job", order)
    assert [one.line() for one in found] == []
    assert sound(archive)
