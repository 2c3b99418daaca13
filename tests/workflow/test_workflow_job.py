"""A job in Temporal, end to end: scripted model, real server, real archive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count

import pytest
from stage import Stage, activities_of, events_of
from temporalio.client import WorkflowHandle

from runtime.archive.keys import is_end
from runtime.base.errors import NotFound
from runtime.base.spec.models import Budget
from runtime.base.values import JobKey, Usage
from runtime.client.control import Control
from runtime.client.wishes import cancel, send
from runtime.job.stops import JobStatus
from tests.eventually import SECONDS, eventually, until_phase
from tests.held_store import HeldStore
from workflows.job import JobWorkflow
from workflows.messages import JobOutcome, Note, Origin

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.smoke
async def test_a_job_views_groups_and_finishes(stage: Stage) -> None:
    """Views, a group, a running node and a checked result; every prompt and reply is in the
    archive.
    """
    (stage.workspace / "a.py").write_text("def one():\n    return 1\n")
    outcome, archive = await stage.run(
        [
            "a = view('a.py')",
            "g = group(a, tokens=200).Run(freq='Sync')\na.Run(freq='Sync')",
            "print(open('a.py').read())",
            "finish({'ok': True})",
        ],
        result={"type": "object", "required": ["ok"]},
    )
    assert (outcome.status, outcome.turns, outcome.reason) == (JobStatus.SUCCEEDED, 4, "finished")
    assert [step.turn for step in archive.steps()] == [1, 2, 3, 4]
    end = archive.end(outcome.run)
    assert end is not None
    assert end.result == {"ok": True}
    shown = archive.turn_layout(outcome.run, 2)
    assert any(s.kind == "view" and "def one()" in s.text for s in shown)


async def test_a_turn_without_effects_is_one_activity(stage: Stage) -> None:
    """docs/design.md section 3: one activity a turn, and nothing else but the verdict's marker."""
    _, _ = await stage.run(["x = 1", "x += 1", "print(x)", "finish(x)"])
    history = await stage.history()
    assert activities_of(history) == ["begin", "turn-1", "turn-2", "turn-3", "turn-4", "end"]
    # The verdicts of four statements, and the patches that the run began with.
    assert len(events_of(history, "MARKER_RECORDED")) == 5


async def test_an_error_is_shown_and_the_job_goes_on(stage: Stage) -> None:
    """Exceptions, type errors, limits: each is an outcome in the next prompt."""
    outcome, archive = await stage.run(
        [
            "1/0",
            "view(1)",
            "open('../x').read()",
            "while True: pass",
            "x = [0] * 10**9",
            "def f(n): return f(n + 1)\nf(0)",
            "while True: print('x' * 1000)",
            "finish(None)",
        ]
    )
    assert outcome.status is JobStatus.SUCCEEDED
    results = [s.text for s in archive.turn_layout(outcome.run, 8) if s.kind == "result"]
    expected = [
        "ZeroDivisionError",
        "TypeCheckError",
        "PermissionError",
        "TimeoutError",
        "MemoryError",
        "RecursionError",
        "MemoryError",
    ]
    assert [name in text for name, text in zip(expected, results, strict=True)] == [True] * 7


async def test_three_bad_replies_end_the_job(stage: Stage) -> None:
    """The model is told each time what is wrong; after three in a row the job has failed with the
    reason.
    """
    outcome, _ = await stage.run(
        [{"text": ""}, {"text": "<script type='text/x-python'>x"}, {"text": ""}, "finish()"]
    )
    assert outcome.status is JobStatus.FAILED
    assert "3 replies in a row" in outcome.reason


@pytest.mark.smoke
async def test_a_message_reaches_the_model(stage: Stage) -> None:
    """A signal's text stands in the next prompt."""
    spec = stage.spec(["wait(600)", "z = 3", "finish()"])
    handle = await stage.start(spec)
    # It is not over before the message comes, on however busy a machine.
    await until_phase(handle, "asleep")
    await handle.signal("message", Note.of("look at b.py too"))
    outcome = await handle.result()
    from runtime.archive.job import JobArchive

    layout = JobArchive(stage.store, stage.batch, spec.id).turn_layout(outcome.run, outcome.turns)
    assert [s.text for s in layout if s.kind == "message"] == ["look at b.py too"]


async def test_messages_that_a_job_ends_before_are_counted(stage: Stage) -> None:
    """Of five the turn has room for two; the end of one that reads all says nothing of any."""
    sent = tuple(f"message {number} " + "word " * 900 for number in range(5))
    spec = stage.spec(["finish(1)"], context_tokens=8_000)
    handle = await stage.start(spec, origin=Origin(seed="any", inbox=sent))
    ends = [stage.archive(spec).end((await handle.result()).run)]
    spec = stage.spec(["x = 1", "x = 2", "finish(x)"], context_tokens=8_000)
    handle = await stage.start(spec, origin=Origin(seed="any", inbox=sent))
    ends.append(stage.archive(spec).end((await handle.result()).run))
    assert [end.unread for end in ends if end is not None] == [3, 0]


async def test_a_message_to_a_paused_job_that_is_cancelled_is_counted(stage: Stage) -> None:
    """One that came before the pause, and one during it: no look is taken at what came since."""
    spec = stage.spec(["wait(600)", "finish()"])
    handle = await stage.start(spec)
    # It is not over before it is paused, on however busy a machine.
    await until_phase(handle, "asleep")
    await handle.signal("pause", Note.of())
    await handle.signal("message", Note.of("wake up"))
    await until_phase(handle, "paused")
    await handle.signal("message", Note.of("be brief"))
    await handle.cancel()
    end = stage.archive(spec).end((await handle.result()).run)
    assert end is not None and (end.status, end.unread) == ("cancelled", 2)


async def test_a_budget_stops_a_job(stage: Stage) -> None:
    """The reason names the budget that is spent."""
    outcome, _ = await stage.run(["x = 1"] * 5, turns=3)
    assert (outcome.status, outcome.turns) == (JobStatus.BUDGET, 3)
    assert outcome.reason == "the budget of 3 turns is spent"


@pytest.mark.parametrize("deadline", [None, 10.0])
async def test_what_cuts_a_call_in_flight_books_it(stage: Stage, deadline: float | None) -> None:
    """A job that waits for its model ends as cancelled, or by its deadline; its end is in the
    archive.
    """
    budget = Budget(deadline=deadline)
    spec = stage.spec([{"code": "x = 1", "delay": 60}], budget=budget)
    handle = await stage.start(spec)
    archive = stage.archive(spec)
    if deadline is None:
        await until_phase(handle, "model")
        run = handle.first_execution_run_id or ""
        await eventually(lambda: bool(archive.attempts_of(run, 1)), "the call is sent")
        await handle.cancel()
    outcome = await handle.result()
    assert outcome.status is (JobStatus.BUDGET if deadline else JobStatus.CANCELLED)
    attempts = archive.attempts(outcome.run, 1)
    if deadline and not attempts:
        # So busy a machine that the call was not sent in time.
        assert outcome.usage == Usage()
        return
    [attempt] = attempts
    failure, end = archive.failure(attempt.key), archive.end(outcome.run)
    assert failure is not None and end is not None
    # What was sent is booked, by the outcome and by the record of the end alike, and as an
    # estimate.
    # A deadline comes when the call's own time is over, too.
    assert failure.error_type == "CallCut" or (deadline and failure.error_type == "ModelTimeout")
    assert outcome.usage == end.usage == failure.spent.usage
    assert outcome.usage.prompt > 0 and not outcome.usage.reported


async def test_a_cancel_that_comes_at_the_end_loses_nothing(stage: Stage) -> None:
    """The job was over before it: its end is in the archive, and it is what it would have been."""
    async with held(stage, is_end) as store:
        handle = await stage.start(spec := stage.spec(["finish(1)"]))
        await asyncio.to_thread(store.reached.wait, SECONDS)
        await cancelled(handle)
        store.let_go.set()
        outcome = await handle.result()
    end = stage.archive(spec).end(outcome.run)
    assert end is not None and (outcome.status, end.result) == (JobStatus.SUCCEEDED, 1)


async def test_who_wants_something_of_a_job_at_its_end_is_told_that_it_is_too_late(
    stage: Stage,
) -> None:
    """What the end counts has been told to the archive by then."""
    async with held(stage, is_end) as store:
        handle = await stage.start(spec := stage.spec(["finish(1)"]))
        await asyncio.to_thread(store.reached.wait, SECONDS)
        control = Control(stage.client, stage.store)
        with pytest.raises(NotFound, match="ends: it reads no message any more"):
            await send(control, JobKey(batch=stage.batch, job=spec.id), "be brief")
        # Nor can it be cancelled: it ends as it does.
        with pytest.raises(NotFound, match="ends already"):
            await cancel(control, JobKey(batch=stage.batch, job=spec.id))
        store.let_go.set()
        outcome = await handle.result()
    end = stage.archive(spec).end(outcome.run)
    assert end is not None and (outcome.status, end.unread) == (JobStatus.SUCCEEDED, 0)


async def test_no_message_goes_to_a_job_whose_masks_nobody_knows_yet(stage: Stage) -> None:
    """Temporal would have it as it was written: the rules are archived as the job begins."""
    async with held(stage, lambda key: "/definition/" in key) as store:
        handle = await stage.start(spec := stage.spec(["finish(1)"]))
        await asyncio.to_thread(store.reached.wait, SECONDS)
        key = JobKey(batch=stage.batch, job=spec.id)
        with pytest.raises(NotFound, match="begins, and what is to be masked for it"):
            await send(Control(stage.client, stage.store), key, "my word")
        store.let_go.set()
        outcome = await handle.result()
    end = stage.archive(spec).end(outcome.run)
    assert end is not None and (outcome.status, end.unread) == (JobStatus.SUCCEEDED, 0)


async def test_each_message_that_is_accepted_is_read_or_counted(stage: Stage) -> None:
    """Also those that come while the last statement computes, in the task that tells the end."""
    handle = await stage.start(
        spec := stage.spec(["t = 0\nfor i in range(2_000_000):\n    t += i\nfinish(1)"])
    )
    key, accepted = JobKey(batch=stage.batch, job=spec.id), 0
    with suppress(NotFound):
        for accepted in count():
            await send(Control(stage.client, stage.store), key, f"word-{accepted}.")
    outcome = await handle.result()
    archive = stage.archive(spec)
    prompt = "".join(segment.text for segment in archive.turn_layout(outcome.run, 1))
    read, end = prompt.count("word-"), archive.end(outcome.run)
    # The one that was refused may have come in time.
    assert end is not None and read + end.unread - accepted in {0, 1}


@asynccontextmanager
async def held(stage: Stage, which: Callable[[str], bool]) -> AsyncIterator[HeldStore]:
    """Run a worker that waits with the first object ``which`` is to be held."""
    own = stage.store
    stage.store = store = HeldStore(own, which)
    stage.queue += "-held"
    async with stage.open():
        try:
            yield store
        finally:
            # The worker's end waits for whoever is kept waiting.
            store.let_go.set()
            stage.store = own


async def cancelled(handle: WorkflowHandle[JobWorkflow, JobOutcome]) -> None:
    """Cancel a job, and wait until it has heard of it."""
    await handle.cancel()

    async def heard() -> bool:
        history = await handle.fetch_history()
        # Not in the history before the task has ended in whose midst it came.
        asked = events_of(history, "WORKFLOW_EXECUTION_CANCEL_REQUESTED")
        told = events_of(history, "WORKFLOW_TASK_COMPLETED")
        return bool(asked) and bool(told[-1].event_id > asked[-1].event_id)

    await eventually(heard, "the job has heard of the cancel")
