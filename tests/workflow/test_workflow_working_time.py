"""What time is whose: the wall budget is of time that is worked, a deadline of the clock."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from pathlib import Path

import pytest
from stage import Stage, replayer
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory
from temporalio.testing import WorkflowEnvironment
from temporalio.workflow import NondeterminismError
from test_workflow_strangers import timers

from activities.verdicts import RecordedVerdict, record_verdict
from runtime.base.spec.models import Budget
from runtime.job.stops import JobStatus
from runtime.tools.host import describe_tool
from runtime.worker import parts
from tests.eventually import eventually

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

HOUR = 3600
TOOLS = '''
import time
from pathlib import Path


def work(seconds: float) -> float:
    """Works for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.02)
    return seconds


def hold() -> int:
    """Waits to be let go."""
    (Path(__file__).parent / "called").touch()
    while not (Path(__file__).parent / "go").exists():
        time.sleep(0.02)
    return 1
'''


def with_hours_between(history: WorkflowHistory) -> WorkflowHistory:
    """The history as it would be, had each of its waits for a worker, but the first, taken an hour
    more.
    """
    hops = -1
    for event in history.events:
        hops += event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED
        event.event_time.FromDatetime(event.event_time.ToDatetime() + timedelta(hours=max(hops, 0)))
    return history


@pytest.mark.parametrize("deadline", [None, 100.0 * HOUR, 1.5 * HOUR])
async def test_hours_between_are_not_worked(stage: Stage, deadline: float | None) -> None:
    """Calls, files, readings and sleeps that wait an hour for a worker leave a wall budget of an
    hour as it was. The clock goes on.
    """
    (stage.workspace / "a.txt").write_text("one\n")
    statements = [
        "a = view('a.txt', freq='Sync')\nopen('a.txt').read()",
        "wait(0.1)",
        "finish(a.text)",
    ]
    outcome, _ = await stage.run(statements, budget=Budget(wall_seconds=HOUR, deadline=deadline))
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 3)
    late = with_hours_between(await stage.history())
    if deadline == 1.5 * HOUR:
        # The job would have ended there; so the history of one that went on is not its own.
        with pytest.raises(NondeterminismError):
            await replayer().replay_workflow(late)
    else:
        await replayer().replay_workflow(late)


async def test_a_job_whose_worker_was_away_has_lost_no_time(
    temporal: WorkflowEnvironment, tmp_path: Path
) -> None:
    """Longer without a worker than the wall budget is none of it; a deadline goes by the clock."""
    made, wall = Stage(temporal.client, tmp_path, "away"), 25.0
    async with made.open():
        # What a process loads for its first job may take as long as that.
        await made.run(["wait(0.1)", "finish(1)"])
        began, handles = time.time(), []
        # The one may be over before the worker has gone, the other is not.
        for deadline, wait in ((None, 6), (wall, 600)):
            spec = made.spec(
                [f"wait({wait})", "finish(1)"], budget=Budget(wall_seconds=wall, deadline=deadline)
            )
            handles.append(await made.start(spec))
        for handle in handles:
            await timers(handle, 1)
    await eventually(lambda: time.time() > began + wall + 1, "the deadline has passed")
    async with made.open():
        on, over = [await handle.result() for handle in handles]
    assert (on.status, on.reason) == (JobStatus.SUCCEEDED, "finished")
    assert over.status is JobStatus.BUDGET
    assert over.reason == "the deadline (25s after the job's start) has passed"
    await made.replay_all()


async def test_work_that_is_longer_than_the_wall_budget_ends_the_job(stage: Stage) -> None:
    """A tool that works for longer than the budget is the last."""
    (stage.path / "own.py").write_text(TOOLS)
    tools = (describe_tool("own:work", str(stage.path)),)
    outcome, _ = await stage.run(
        ["work(4.5)", "finish(1)"], tools=tools, budget=Budget(wall_seconds=4)
    )
    assert outcome.status is JobStatus.BUDGET
    # On a busy machine it is spent in the call before, of which it then tells.
    assert outcome.reason.partition("; turn 1: ")[0] == "the wall budget of 4 s is spent"


@pytest.mark.parametrize(
    ("reply", "budget", "reason"),
    [
        (
            {"text": "x", "delay": 3000},
            Budget(wall_seconds=3),
            "the wall budget of 3 s is spent",
        ),
        (
            {"text": "x", "delay": 3000},
            Budget(deadline=3.0),
            r"the deadline \(3s after the job's start\) has passed",
        ),
        (
            {"text": "x", "fail": {"status": 503}, "times": 99},
            Budget(wall_seconds=5),
            r"the wall budget of 5 s (has \ds left, too little for another attempt|is spent)",
        ),
        (
            {"text": "x", "fail": {"status": 503}, "times": 99},
            Budget(deadline=5.0),
            r"the deadline \(5s after the job's start\) (comes before another attempt|has passed)",
        ),
    ],
    ids=["wall-silent", "deadline-silent", "wall-refusing", "deadline-refusing"],
)
async def test_a_model_that_does_not_answer_is_not_waited_for(
    stage: Stage, reply: dict[str, object], budget: Budget, reason: str
) -> None:
    """Attempts and the pauses between them are worked; and the clock goes on in them: until no
    other attempt would come in time, or on a busy machine beyond that.
    """
    outcome, archive = await stage.run([reply], budget=budget)
    assert outcome.status is JobStatus.BUDGET
    told, turn, _ = outcome.reason.partition("; turn 1: ")
    assert re.fullmatch(reason, told), outcome.reason
    # So busy a machine that no call was made in time has none to tell of.
    assert turn or not archive.attempts(outcome.run, 1)


async def test_a_deadline_ends_a_job_in_a_tool(stage: Stage) -> None:
    """The call is given up, though it may take hours."""
    (stage.path / "own.py").write_text(TOOLS)
    tools = (describe_tool("own:hold", str(stage.path)),)
    try:
        outcome, _ = await stage.run(
            ["hold()", "finish(1)"], tools=tools, budget=Budget(deadline=3.0)
        )
    finally:
        (stage.path / "go").touch()
    assert outcome.status is JobStatus.BUDGET
    told, turn, _ = outcome.reason.partition("; turn 1: ")
    assert told == "the deadline (3s after the job's start) has passed"
    # Else the time was over before, on however busy a machine.
    assert turn or not (stage.path / "called").exists()


async def test_a_time_that_has_passed_lets_no_job_begin(stage: Stage) -> None:
    """As a deadline it is the same for all jobs, whenever they start."""
    outcome, _ = await stage.run(["finish(1)"], budget=Budget(deadline="2026-01-01T08:00:00+00:00"))
    assert (outcome.status, outcome.turns) == (JobStatus.BUDGET, 0)
    assert outcome.reason == "the deadline (2026-01-01T08:00:00+00:00) has passed"


async def test_time_counts_that_an_older_worker_recorded(
    temporal: WorkflowEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its verdicts say nothing of the look before them: the next one, in the same statement, does
    not go back to it.
    """
    stretches = 0

    @activity.defn(name="record_verdict")
    async def of_either(verdict: RecordedVerdict | None) -> RecordedVerdict | None:
        nonlocal stretches
        made = await record_verdict(verdict)
        stretches += 1
        older = {"at": 0.0, "events": 0, "ms": 25_000} if stretches % 2 else {}
        return None if made is None else made.model_copy(update=older)

    monkeypatch.setattr(parts, "record_verdict", of_either)
    stage = Stage(temporal.client, tmp_path, "older")
    two = "for n in range(150): note('one')"
    async with stage.open():
        outcome, _ = await stage.run([two, two, two, "finish(1)"], budget=Budget(wall_seconds=60))
    assert outcome.reason == "the wall budget of 60 s is spent"
    await stage.replay_all()
