"""Background preparation in Temporal: activities that nobody awaits, whose payloads land at
ticks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stage import Stage, activities_of
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHandle
from temporalio.testing import WorkflowEnvironment

from runtime.base.effect_numbers import PREPARED_EFFECTS
from runtime.job.stops import JobStatus
from tests.eventually import eventually, until_phase
from workflows.messages import Note

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


async def _edited_asleep(stage: Stage, statements: list[str]) -> tuple[object, object]:
    """Runs a job whose first two statements sleep until somebody wakes it. The file changes in the
    first sleep; the second one is over when the job has what was then prepared.
    """
    path = stage.workspace / "log.txt"
    path.write_text("one\n")
    spec = stage.spec(statements)
    handle = await stage.start(spec)
    await until_phase(handle, "asleep")
    path.write_text("two\n")
    await handle.signal("message", Note.of("wake up"))
    await eventually(lambda: _sleeps_on(handle), "the job sleeps on with what was prepared")
    await handle.signal("message", Note.of("wake up again"))
    return await handle.result(), stage.archive(spec)


async def _sleeps_on(handle: WorkflowHandle[Any, Any]) -> bool:
    """Whether the job has gone to sleep behind the first preparation's end: by a timer of seconds,
    and not by the one with which it falls asleep.
    """
    prepared, ended = 0, False
    for event in (await handle.fetch_history()).events:
        if event.activity_task_scheduled_event_attributes.activity_id == "payload-1":
            prepared = event.event_id
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
            end = event.activity_task_completed_event_attributes
            ended = ended or end.scheduled_event_id == prepared
        elif ended and event.event_type == EventType.EVENT_TYPE_TIMER_STARTED:
            timer = event.timer_started_event_attributes
            if timer.start_to_fire_timeout.ToSeconds() > 0:
                return True
    return False


@pytest.mark.parametrize("cached_jobs", [100, 0])
async def test_a_payload_is_applied_at_a_tick(
    temporal: WorkflowEnvironment, tmp_path: Path, cached_jobs: int
) -> None:
    """The turn in which it is prepared does not wait for it; the step after the sleep whose tick
    applied it says so.
    """
    stage = Stage(temporal.client, tmp_path, f"async-{cached_jobs}")
    async with stage.open(cached_jobs=cached_jobs):
        outcome, archive = await _edited_asleep(
            stage,
            [
                "foo = view('log.txt', freq='Async')\nwait(3600)",
                "before = foo.text\nwait(3600)",
                "foo.Pause()\nafter = foo.text",
                "finish([before, after])",
            ],
        )
    assert archive.end(outcome.run).result == ["one", "two"]
    history = await stage.history()
    # The third preparation begins at turn 3's tick; turn 3's statement pauses the view.
    assert activities_of(history)[:5] == [
        "begin",
        "turn-1",
        "turn-1-effect-0",
        "payload-1",
        "turn-2",
    ]
    steps = {step.turn: step.interim for step in archive.steps(outcome.run)}
    assert steps[3].asleep == ((0, "view-1", 2, PREPARED_EFFECTS + 1),)
    assert len(steps[3].ticks) == 1
    assert all(step.payloads == () for step in steps.values())
    (feed,) = [s.text for s in archive.turn_layout(outcome.run, 3) if s.kind == "delta"]
    assert "log" not in feed.splitlines()[1]
    assert feed.splitlines()[2] == "foo: its source changed, +1 -1 lines of those shown"
    await stage.replay_all()
    stage.check_prompts()


async def test_a_job_ends_though_something_is_being_prepared(stage: Stage) -> None:
    """What nobody awaits holds nobody up."""
    (stage.workspace / "log.txt").write_text("one\n")
    outcome, _ = await stage.run(
        ["foo = view('log.txt', freq='Async')", *["x = foo.text"] * 4, "finish(x)"]
    )
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 6)
