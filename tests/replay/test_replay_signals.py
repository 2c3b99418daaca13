"""Messages, cancels and resets that meet a reset: each is delivered once or refused with a
reason.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowHandle

from activities.record import AfterRecord
from runtime.base.errors import InputError, NotFound, ServerError
from runtime.client.resets import outcome_of_reset
from runtime.job.stops import JobStatus
from runtime.projection.segments import SegmentKind
from tests.eventually import eventually, until_phase, until_turn
from tests.replay.replays import held, reexecution, replayed, rerun, reset_job, turn_of
from tests.replay.timelines import archive_of, replay_runs, sound
from tests.workflow.stage import Stage, events_of
from workflows.messages import Note

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

MANY = [{"code": f"n = {n}", "delay": 0.1} for n in range(30)]
"""What a job of some 3 s does, which never finishes."""


def _messages(stage: Stage, run: str, turn: int) -> list[str]:
    layout = archive_of(stage, "job").turn_layout(run, turn)
    return [segment.text for segment in layout if segment.kind is SegmentKind.MESSAGE]


async def _told(stage: Stage, texts: list[str]) -> str:
    """A job of 14 turns that was sent messages after its third turn, and before its last; its
    run.
    """
    model, gate = held(stage, [*MANY[:13], "finish(n)"], 13)
    handle = await stage.start(stage.spec(model, id="job"))
    archive = archive_of(stage, "job")
    await turn_of(archive, 3)
    for text in texts:
        await handle.signal("message", Note.of(text))
    gate.touch()
    outcome = await handle.result()
    assert _messages(stage, outcome.run, 14) == texts
    return outcome.run


async def test_messages_after_n_are_delivered_once(stage: Stage) -> None:
    """By the record where it is followed, at once where the model is asked anew; never twice, and
    none is lost.
    """
    texts = ["first", "second", "first"]
    run = await _told(stage, texts)
    frozen, found = await replayed(stage, "job", reexecution(stage, "job", run, 2, frozen=True))
    assert (frozen.status, found) == (JobStatus.SUCCEEDED, [])
    assert _messages(stage, frozen.run, 14) == texts
    anew, _ = await replayed(stage, "job", rerun(stage, "job", run, 2))
    assert (_messages(stage, anew.run, 3), _messages(stage, anew.run, 14)) == (texts, texts)
    assert sound(archive_of(stage, "job"))


async def test_a_later_turns_message_does_not_wake_the_sleep_before(stage: Stage) -> None:
    """The record says what ended that, and its turn is shown it."""
    replies = ["wait(1)", "x = 2", "wait(100)", "finish(x)"]
    handle = await stage.start(stage.spec(replies, id="job"))
    await until_turn(handle, 3)
    await until_phase(handle, "asleep")
    await handle.signal("message", Note.of("Wake up."))
    run = (await handle.result()).run
    archive = archive_of(stage, "job")
    frozen, found = await replayed(stage, "job", reexecution(stage, "job", run, 2, frozen=True))
    assert (frozen.status, found) == (JobStatus.SUCCEEDED, [])
    told = [[step.interim.woken for step in archive.steps(one)] for one in (run, frozen.run)]
    assert told[1] == told[0]
    assert [text.rpartition(" by ")[2] for text in told[0]] == [
        *("", "the time that was set", "", "a message")
    ]
    assert _messages(stage, frozen.run, 4) == ["Wake up."]


async def _sleeps(handle: WorkflowHandle[Any, Any]) -> bool:
    """Whether a job's first sleep has its timer, behind that with which it falls asleep."""
    return len(events_of(await handle.fetch_history(), "TIMER_STARTED")) == 2


@pytest.mark.parametrize("waits", ["wait(1)", "wait(100)"], ids=["resumed", "woken"])
async def test_a_turn_that_a_signal_began_goes_by_its_order(stage: Stage, waits: str) -> None:
    """The job was paused, or slept; and what was sent to a later turn comes there, once."""
    replies = [waits, "x = 2", "wait(100)", "finish(x)"]
    handle = await stage.start(stage.spec(replies, id="job"))
    if waits == "wait(1)":
        await until_phase(handle, "asleep")
        await handle.signal("pause", Note.of())
        await until_phase(handle, "paused")
        await handle.signal("resume", Note.of())
    else:
        await eventually(lambda: _sleeps(handle), "the job sleeps")
        await handle.signal("message", Note.of("Wake up."))
    await until_turn(handle, 3)
    await until_phase(handle, "asleep")
    await handle.signal("message", Note.of("Go on."))
    run = (await handle.result()).run
    told = _messages(stage, run, 4)
    frozen, found = await replayed(stage, "job", reexecution(stage, "job", run, 2, frozen=True))
    assert (frozen.status, found) == (JobStatus.SUCCEEDED, [])
    assert [_messages(stage, frozen.run, turn) for turn in (2, 4)] == [told[:-1], told]
    order = rerun(stage, "job", run, 2, statement="finish('edited')")
    edited, _ = await replayed(stage, "job", order)
    assert archive_of(stage, "job").end(edited.run).result == "edited"


async def test_at_the_end_of_the_record_the_model_goes_on(stage: Stage) -> None:
    """A job that a cancel ended is executed again to there, and then the model writes on; the
    cancel is not repeated.
    """
    model, gate = held(stage, [*MANY[:6], "finish(n)"], 6)
    handle = await stage.start(stage.spec(model, id="job"))
    archive = archive_of(stage, "job")
    await turn_of(archive, 3)
    await handle.cancel()
    ended = await handle.result()
    gate.touch()
    assert ended.status is JobStatus.CANCELLED
    stopped, found = await replayed(stage, "job", reexecution(stage, "job", ended.run, 2))
    # The call that was broken off may have archived its step all the same.
    last = max(step.turn for step in archive.steps(ended.run))
    assert (stopped.status, stopped.reason) == (
        JobStatus.CANCELLED,
        f"the record ends after turn {last}",
    )
    assert found == []
    on = reexecution(stage, "job", ended.run, 2, then=AfterRecord.CONTINUE)
    outcome, _ = await replayed(stage, "job", on)
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 7)
    assert archive.end(outcome.run).result == 5
    assert sound(archive)
    await replay_runs(stage.client, stage, "job")


async def test_a_second_reset_takes_the_job_over(stage: Stage) -> None:
    """Of two resets one run is left open; who waits for the other is told that it was ended, and
    its steps stay.
    """
    model, gate = held(stage, [*MANY, "finish(n)"], 30)
    handle = await stage.start(stage.spec(model, id="job"))
    archive = archive_of(stage, "job")
    await turn_of(archive, 3)
    run = archive.runs()[0]
    orders = [rerun(stage, "job", run, start, statement=f"who = {start}") for start in (2, 3)]
    made = await asyncio.gather(*(reset_job(stage, "job", order) for order in orders))
    await handle.signal("message", Note.of("to whoever is left"))
    gate.touch()
    ends = await asyncio.gather(
        *(outcome_of_reset(stage.client, one) for one in made), return_exceptions=True
    )
    lost = [end for end in ends if isinstance(end, BaseException)]
    (left,) = [end for end in ends if not isinstance(end, BaseException)]
    assert [type(error) for error in lost] == [ServerError]
    assert "another replay took the job over" in str(lost[0])
    assert (left.status, left.turns) == (JobStatus.SUCCEEDED, 31)
    assert _messages(stage, left.run, 31) == ["to whoever is left"]
    first = await stage.client.get_workflow_handle(handle.id, run_id=run).describe()
    assert first.status is WorkflowExecutionStatus.TERMINATED
    assert sound(archive)


async def test_a_cancel_after_the_reset_ends_the_new_run(stage: Stage) -> None:
    """The wish is for the run that is open when it comes."""
    model, gate = held(stage, [*MANY[:4], "finish(n)"], 4)
    gate.touch()
    outcome, archive = await stage.run(model, id="job")
    # What the new run does is not over before the cancel has come.
    gate.unlink()
    made = await reset_job(stage, "job", rerun(stage, "job", outcome.run, 1))
    await stage.client.get_workflow_handle(stage.started[0]).cancel()
    ended = await outcome_of_reset(stage.client, made)
    gate.touch()
    assert ended.status is JobStatus.CANCELLED
    assert archive.end(outcome.run).status == JobStatus.SUCCEEDED
    assert sound(archive)


async def test_what_cannot_be_reset_changes_nothing(stage: Stage) -> None:
    """A turn that is not there, a run that Temporal has deleted, an order that is too long: an
    error, and no replay.
    """
    outcome, archive = await stage.run(["n = 1", "finish(n)"], id="job")
    for start in (3, 400):
        with pytest.raises(NotFound, match="numbered 1 to 2"):
            await reset_job(stage, "job", rerun(stage, "job", outcome.run, start))
    with pytest.raises(InputError, match="too long"):
        await reset_job(stage, "job", rerun(stage, "job", outcome.run, 1, statement="#" * 600_000))
    assert list(archive.store.list(f"{archive.prefix}/replays/")) == []
    assert archive.runs() == [outcome.run]
