"""A job stays with the worker that has it in memory, also where that is busy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import pytest
from stage import Stage, events_of
from temporalio.client import WorkflowHandle

from runtime.interpreter.run import StatementRun
from runtime.job.stops import JobStatus
from runtime.worker.worker import make_worker
from tests.eventually import eventually

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

IN_LINE = timedelta(seconds=5)
"""As long as a task waits where two hundred jobs do nothing but turns on two cores."""

ANSWERS_LATER = """
import time
from pathlib import Path

def respond(messages):
    here = Path(__file__)
    here.with_suffix(".called").touch()
    while not here.with_suffix(".gate").exists():
        time.sleep(0.05)
    return {"code": "finish(1)"}
"""


async def test_a_task_in_line_at_a_busy_worker_stays_there(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever were given it would replay the whole run, for which those behind it would wait."""
    held, free, advance = Event(), Event(), StatementRun.advance

    def holding(run: StatementRun, *given: Any, **also: Any) -> Any:
        if run.source == "hold = 1":
            held.set()
            free.wait()
        return advance(run, *given, **also)

    monkeypatch.setattr(StatementRun, "advance", holding)
    stage.queue += "-line"
    script = stage.path / "later.py"
    script.write_text(ANSWERS_LATER)
    # The SDK keeps one of the two places for jobs that no worker has in memory.
    async with make_worker(stage.client, stage.store, task_queue=stage.queue, workflow_tasks=2):
        try:
            waits = await stage.start(stage.spec(f"scripted/{script}"))
            await eventually(script.with_suffix(".called").exists, "its model is called")
            other = await stage.start(stage.spec(["hold = 1", "finish(1)"]))
            await eventually(held.is_set, "the other place is taken")
            script.with_suffix(".gate").touch()

            async def is_late() -> bool:
                return await in_line(waits) > IN_LINE or bool(await given_away(waits))

            await eventually(is_late, "its task has waited for long")
        finally:
            free.set()
        for handle in (waits, other):
            assert (await handle.result()).status is JobStatus.SUCCEEDED
    # One that is looked at late has waited for so long that it may be anybody's.
    assert all(waited > IN_LINE for waited in await given_away(waits))


async def in_line(handle: WorkflowHandle[Any, Any]) -> timedelta:
    """For how long the job's next task has waited for a worker, by this machine's clock."""
    raw = (await handle.describe()).raw_description
    if not raw.HasField("pending_workflow_task"):
        return timedelta()
    since = raw.pending_workflow_task.original_scheduled_time.ToDatetime(UTC)
    return datetime.now(UTC) - since


async def given_away(handle: WorkflowHandle[Any, Any]) -> list[timedelta]:
    """For how long each task had waited for the job's own worker that was then anybody's."""
    history = await handle.fetch_history()
    times = {event.event_id: event.event_time.ToDatetime() for event in history.events}
    return [
        times[event.event_id]
        - times[event.workflow_task_timed_out_event_attributes.scheduled_event_id]
        for event in events_of(history, "WORKFLOW_TASK_TIMED_OUT")
    ]
