"""A batch whose jobs come in pages, and which goes on in other runs: no job is lost, and none runs
twice.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from stage import FAILS, Stage, events_of, replayer
from temporalio import workflow
from temporalio.client import WorkflowFailureError, WorkflowHistory

from activities.batch_contracts import Followed
from runtime.archive import pages
from runtime.archive.catalog import archive_id
from runtime.archive.job import JobArchive
from runtime.archive.pages import page_key
from runtime.base.errors import NotFound, ServerError
from runtime.base.spec.finish import FinishEvent, OnFinish
from runtime.base.spec.limits import Routes
from runtime.base.spec.models import BatchSpec, JobSpec, Retry
from runtime.base.values import JobKey
from runtime.base.workflow_ids import batch_workflow_id, job_workflow_id, open_on
from runtime.client import orders, plans
from runtime.client.coming import goes_on, with_those_to_come
from runtime.client.control import Control
from runtime.client.paged import in_pages, names_in
from runtime.client.planning import plan_batch
from runtime.client.plans import Plan, Start
from runtime.client.submission import submit
from runtime.client.waiting import waits
from runtime.client.watch import Ended, Retried, Watch
from runtime.client.wishes import cancel, hold_batch
from runtime.client.withdrawing import withdraw
from runtime.job.stops import Cause, JobStatus
from runtime.server.rates import queues_of
from runtime.worker.worker import make_worker
from tests.eventually import SECONDS, eventually
from tests.replay.replays import rerun, reset_job, turn_of
from workflows import batch as batches
from workflows.batch import BatchWorkflow
from workflows.job import JobWorkflow
from workflows.messages import (
    BatchCarried,
    BatchNews,
    BatchOrder,
    JobOrder,
    Note,
    Submission,
    batch_queue,
)

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(loop_scope="session")
async def control(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Control]:
    """A client whose batches have pages of four jobs and short histories, and a worker for them."""
    monkeypatch.setattr(orders, "SUBMIT_BYTES", 0)
    monkeypatch.setattr(plans, "ASKED_EACH", 0)
    monkeypatch.setattr(pages, "MOST_ON_PAGE", 4)
    monkeypatch.setattr(batches, "MOST_EVENTS", 60)
    # A batch that does not answer in time, as on a busy machine, has nothing.
    monkeypatch.setattr("runtime.client.control.ANSWER_WITHIN", timedelta(seconds=SECONDS))
    queue = batch_queue(stage.batch)
    async with make_worker(stage.client, stage.store, task_queue=queue):
        yield Control(stage.client, stage.store)


def batch_of(stage: Stage, specs: list[JobSpec], concurrency: int = 3) -> BatchSpec:
    """A batch of the stage's."""
    return BatchSpec(batch=stage.batch, concurrency=concurrency, jobs=tuple(specs))


async def seen(control: Control, plan: Plan) -> list[Ended | Retried]:
    """How the jobs of a plan end."""
    events = [event async for event in Watch(control, plan).events()]
    return [event for event in events if isinstance(event, Ended | Retried)]


async def histories(stage: Stage) -> list[WorkflowHistory]:
    """The runs of the batch, the last one first. All of them replay."""
    run = (await stage.client.get_workflow_handle(batch_workflow_id(stage.batch)).describe()).run_id
    found: list[WorkflowHistory] = []
    while run:
        handle = stage.client.get_workflow_handle(batch_workflow_id(stage.batch), run_id=run)
        history = await handle.fetch_history()
        await replayer().replay_workflow(history)
        found.append(history)
        begun = history.events[0].workflow_execution_started_event_attributes
        run = begun.continued_execution_run_id
    return found


async def runs_of(stage: Stage, job: str) -> int:
    """How many runs a job has had."""
    key = JobKey(batch=stage.batch, job=job)
    query = f"WorkflowId = '{job_workflow_id(key)}'"
    return len([run async for run in stage.client.list_workflows(query)])


async def test_every_job_once_over_pages_and_runs(
    stage: Stage, control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fourteen jobs in four pages, given three times over, run once each; the batch goes on in
    other runs with jobs that are open, and no history is longer than it may be.
    """
    # The slower its worker, the more of what happens is told in one task, and the fewer events.
    monkeypatch.setattr(batches, "MOST_EVENTS", 30)
    specs = [stage.spec([{"code": "finish(1)"}], id=f"j{n}") for n in range(14)]
    plan = await plan_batch(control, batch_of(stage, specs), rerun_failed=False)
    assert plan.new == 14
    await submit(control, plan)
    await submit(control, plan)
    again = await plan_batch(control, batch_of(stage, specs[::-1]), rerun_failed=False)
    await submit(control, again)
    ended = [event.outcome for event in await seen(control, plan)]
    assert Counter(outcome.key.job for outcome in ended) == {f"j{n}": 1 for n in range(14)}
    assert {outcome.status for outcome in ended} == {JobStatus.SUCCEEDED}
    assert await stage.client.get_workflow_handle(batch_workflow_id(stage.batch)).result()
    found = await histories(stage)
    assert len(found) >= 3
    for n in range(14):
        assert len(stage.archive(specs[n]).runs()) == 1
        await eventually(lambda n=n: _is(runs_of(stage, f"j{n}"), 1), "the run is listed")
    assert all(len(history.events) < 200 for history in found)
    done = await plan_batch(control, batch_of(stage, specs), rerun_failed=False)
    assert len(done.counted(Start.DONE)) == 14


async def _is(number: object, expected: int) -> bool:
    return await number == expected  # type: ignore[misc]


async def test_a_job_in_a_page_is_cancelled_before_it_began(stage: Stage, control: Control) -> None:
    """It ends at once, as one that waits for its place does, and its page passes it over."""
    slow = stage.spec([{"code": "finish(1)", "delay": 3600.0}], id="slow")
    specs = [slow, *(stage.spec([{"code": "finish(1)"}], id=f"j{n}") for n in range(8))]
    plan = await plan_batch(control, batch_of(stage, specs, concurrency=1), rerun_failed=False)
    await submit(control, plan)
    withdrawn = JobKey(batch=stage.batch, job="j7")
    await cancel(control, withdrawn)

    async def has_ended() -> bool:
        return await control.outcome(withdrawn) is not None

    await eventually(has_ended, "the job in the last page ends")
    with pytest.raises(NotFound):
        await cancel(control, withdrawn)

    async def runs() -> bool:
        standing = await control.standing(JobKey(batch=stage.batch, job="slow"))
        return standing is not None

    await eventually(runs, "the first job runs")
    await cancel(control, JobKey(batch=stage.batch, job="slow"))
    ended = {event.outcome.key.job: event.outcome for event in await seen(control, plan)}
    assert ended["j7"].reason == "cancelled before it began"
    assert ended["slow"].status is JobStatus.CANCELLED
    assert [ended[f"j{n}"].status for n in range(7)] == [JobStatus.SUCCEEDED] * 7
    await histories(stage)


async def has_begun(control: Control, stage: Stage, job: str) -> bool:
    """Whether a job runs, or has run."""
    return await control.standing(JobKey(batch=stage.batch, job=job)) is not None


async def ends(control: Control, stage: Stage, job: str) -> bool:
    """Whether a job has ended."""
    return await control.outcome(JobKey(batch=stage.batch, job=job)) is not None


async def with_a_slow_one(stage: Stage, control: Control, jobs: int) -> tuple[Plan, BatchSpec]:
    """A batch with one place, which a job has that ends of itself in an hour; it has begun."""
    slow = stage.spec([{"code": "finish(1)", "delay": 3600.0}], id="slow")
    others = (stage.spec([{"code": "finish(1)"}], id=f"j{n}") for n in range(jobs))
    batch = batch_of(stage, [slow, *others], concurrency=1)
    plan = await plan_batch(control, batch, rerun_failed=False)
    await submit(control, plan)
    await eventually(lambda: has_begun(control, stage, "slow"), "the first job runs")
    return plan, batch


async def test_whoever_follows_a_batch_hears_of_its_end_when_it_comes(
    stage: Stage, control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not when the next round is due; also where the batch goes on in other runs meanwhile."""
    monkeypatch.setattr("runtime.client.watch.POLL_SECONDS", 10**6)
    asked: list[str] = []
    news = Control.batch_news

    async def noted(self: Control, batch: str, known: int) -> BatchNews | None:
        told = await news(self, batch, known)
        asked.append(batch)
        return told

    monkeypatch.setattr(Control, "batch_news", noted)
    plan, _ = await with_a_slow_one(stage, control, jobs=14)
    following = asyncio.create_task(seen(control, plan))
    await eventually(lambda: _is(_count(asked), 1), "the first round is over")
    await cancel(control, JobKey(batch=stage.batch, job="slow"))
    assert {event.outcome.key.job for event in await following} == set(plan.ids)
    assert len(asked) == 2
    assert len(await histories(stage)) > 1


async def _count(asked: list[str]) -> int:
    return len(asked)


async def test_a_cancelled_batch_starts_none_of_the_jobs_of_its_pages(
    stage: Stage, control: Control
) -> None:
    """Each ends as cancelled, once; also while the batch is paused. The batch ends."""
    plan, _ = await with_a_slow_one(stage, control, jobs=17)
    await hold_batch(control, stage.batch, "pause")
    await hold_batch(control, stage.batch, "withdraw_all")
    ended = [event.outcome for event in await seen(control, plan)]
    assert Counter(outcome.key.job for outcome in ended) == Counter(plan.ids)
    assert Counter(outcome.reason for outcome in ended) == {
        "cancelled": 1,
        "cancelled before it began": 17,
    }
    await stage.client.get_workflow_handle(batch_workflow_id(stage.batch)).result()
    assert all(len(history.events) < 200 for history in await histories(stage))
    for n in range(17):
        archive = JobArchive(stage.store, stage.batch, f"j{n}")
        assert archive.runs() == [] and archive.definition() is not None
        await eventually(lambda n=n: _is(runs_of(stage, f"j{n}"), 1), "the run is listed")


async def test_chosen_jobs_of_pages_are_cancelled_without_the_others(
    stage: Stage, control: Control
) -> None:
    """At once, though no place is free; those that are not named keep theirs in the queue."""
    plan, _ = await with_a_slow_one(stage, control, jobs=14)
    state = await control.batch_state(stage.batch)
    assert state is not None
    waiting = in_pages(stage.store, state, ())
    gone = {"j5", "j8", "j9", "j10", "j11", "j13"}
    assert gone < set(waiting)
    assert await withdraw(control, stage.batch, gone | {"nobody"}) == gone
    for job in sorted(gone):
        await eventually(lambda job=job: ends(control, stage, job), "a withdrawn job ends")
    state = await control.batch_state(stage.batch)
    assert state is not None
    assert sorted(in_pages(stage.store, state, waiting)) == sorted(set(waiting) - gone)
    assert await withdraw(control, stage.batch, gone) == frozenset()
    await cancel(control, JobKey(batch=stage.batch, job="slow"))
    ended = {event.outcome.key.job: event.outcome for event in await seen(control, plan)}
    assert {job for job in ended if ended[job].status is JobStatus.CANCELLED} == gone | {"slow"}
    assert len(ended) == 15
    await histories(stage)


async def test_a_job_that_was_withdrawn_from_a_page_runs_if_it_is_given_again(
    stage: Stage, control: Control
) -> None:
    """While pages are left that it was withdrawn from."""
    _, batch = await with_a_slow_one(stage, control, jobs=10)
    await cancel(control, JobKey(batch=stage.batch, job="j8"))
    await eventually(lambda: ends(control, stage, "j8"), "the withdrawn job ends")
    rerun = await plan_batch(control, batch, rerun_failed=True)
    assert [job.id for job in rerun.counted(Start.RERUN)] == ["j8"]
    await submit(control, rerun)
    await cancel(control, JobKey(batch=stage.batch, job="slow"))
    ended = {event.outcome.key.job: event.outcome for event in await seen(control, rerun)}
    assert ended["j8"].status is JobStatus.SUCCEEDED
    await histories(stage)


async def test_pages_that_cannot_be_read_end_their_batch_with_the_reason(
    stage: Stage, control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a few tries, when the jobs of all others have ended; whoever follows it is told."""
    monkeypatch.setattr("activities.batches.PAGE_TRIES", 2)
    plan, batch = await with_a_slow_one(stage, control, jobs=14)
    state = await control.batch_state(stage.batch)
    assert state is not None
    assert [page.jobs for page in state.pages] == [4, 4, 3]
    gone, damaged = (stage.path / "archive" / page_key(page.digest) for page in state.pages[:2])
    gone.unlink()
    damaged.chmod(0o600)
    damaged.write_bytes(b"damaged")
    await cancel(control, JobKey(batch=stage.batch, job="slow"))
    with pytest.raises(WorkflowFailureError):
        await stage.client.get_workflow_handle(batch_workflow_id(stage.batch)).result()
    with pytest.raises(ServerError) as told:
        await seen(control, plan)
    for words in (
        "was not started: 4 jobs of a page cannot be read: the archive has no object",
        "; 4 jobs of a page cannot be read: ",
        "; remove this object. Give the same command again",
    ):
        assert words in str(told.value)
    begun = [await has_begun(control, stage, f"j{n}") for n in range(14)]
    assert begun == [True] * 3 + [False] * 8 + [True] * 3
    await histories(stage)
    damaged.unlink()
    again = await plan_batch(control, batch, rerun_failed=False)
    await submit(control, again)
    ended = [event.outcome.status for event in await seen(control, again)]
    assert ended == [JobStatus.SUCCEEDED] * 8


@pytest.mark.parametrize("kept", [0, 1])
async def test_the_end_of_a_batch_that_lost_pages_is_told_as_a_failure(
    stage: Stage, control: Control, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    """With the reason; also where no job of it ever began."""
    monkeypatch.setattr("activities.batches.PAGE_TRIES", 2)
    batch = await stage.client.start_workflow(
        BatchWorkflow.run,
        BatchOrder(batch=stage.batch),
        id=batch_workflow_id(stage.batch),
        task_queue=batch_queue(stage.batch),
        memo={"archive": archive_id(stage.store)},
    )
    await hold_batch(control, stage.batch, "pause")
    specs = [stage.spec([{"code": "finish(1)"}], id=f"j{n}") for n in range(8)]
    command = f"cat > told-{kept}"
    on_finish = OnFinish(
        command=command, directory=str(stage.path), events=(FinishEvent.BATCH,), timeout=120.0
    )
    given = batch_of(stage, specs).model_copy(update={"on_finish": on_finish})
    await submit(control, await plan_batch(control, given, rerun_failed=False))
    state = await control.batch_state(stage.batch)
    assert state is not None
    for page in list(state.pages)[kept:]:
        (stage.path / "archive" / page_key(page.digest)).unlink()
    await hold_batch(control, stage.batch, "resume")
    with pytest.raises(WorkflowFailureError):
        await batch.result()
    told = json.loads((stage.path / f"told-{kept}").read_text())
    assert (told["status"], told["jobs"]) == ("failed", 4 * kept)
    assert told["reason"].startswith("4 jobs of a page cannot be read: the archive has no object")
    await histories(stage)


async def test_jobs_are_withdrawn_beside_a_page_that_cannot_be_read(
    stage: Stage,
    control: Control,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One by its name and others by theirs, each of pages after that one, which is told."""
    monkeypatch.setattr("activities.batches.PAGE_TRIES", 2)
    await with_a_slow_one(stage, control, jobs=14)
    state = await control.batch_state(stage.batch)
    assert state is not None
    (stage.path / "archive" / page_key(state.pages[0].digest)).unlink()
    readable = [f"j{n}" for n in range(7, 14)]
    assert in_pages(stage.store, state, ()) == readable
    assert names_in(stage.store, state.pages) == set(readable)
    assert "a page of jobs that cannot be read is passed over: the archive has no" in caplog.text
    await cancel(control, JobKey(batch=stage.batch, job="j13"))
    await eventually(lambda: ends(control, stage, "j13"), "the job ends that was named")
    assert await withdraw(control, stage.batch, {"j3", "j12"}) == {"j12"}
    await eventually(lambda: ends(control, stage, "j12"), "the job ends that was chosen")
    await cancel(control, JobKey(batch=stage.batch, job="slow"))
    with pytest.raises(WorkflowFailureError):
        await stage.client.get_workflow_handle(batch_workflow_id(stage.batch)).result()
    begun = [job for job in readable if JobArchive(stage.store, stage.batch, job).runs()]
    assert begun == readable[:-2]
    await histories(stage)


async def test_a_plan_that_is_out_of_date_begins_no_job_again(
    stage: Stage, control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a large batch jobs begin and end while a plan is made. What is left of them may be few."""
    slow = stage.spec([{"code": "finish(1)", "delay": 3600.0}], id="slow")
    others = [
        stage.spec([{"code": "finish(1)"}], id=f"j{n}", retry=Retry(times=1)) for n in range(5)
    ]
    batch = batch_of(stage, [slow, *others], concurrency=2)
    plan, late = [await plan_batch(control, batch, rerun_failed=False) for _ in range(2)]
    await submit(control, plan)
    for spec in others:
        await eventually(lambda id=spec.id: ends(control, stage, id), "the job ends")
    monkeypatch.setattr(orders, "SUBMIT_BYTES", 500_000)
    await submit(control, late)
    await cancel(control, JobKey(batch=stage.batch, job="slow"))
    await stage.client.get_workflow_handle(batch_workflow_id(stage.batch)).result()
    for spec in others:
        assert len(stage.archive(spec).runs()) == 1
        outcome = await control.outcome(JobKey(batch=stage.batch, job=spec.id))
        assert outcome is not None and outcome.status is JobStatus.SUCCEEDED
    await histories(stage)


@pytest.mark.parametrize("by_name", [False, True], ids=["in-pages", "by-name"])
async def test_jobs_that_wait_to_begin_again_are_not_done(
    stage: Stage, control: Control, by_name: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the same command is given without ``--rerun-failed`` while they wait for their places:
    they are followed to their new ends. One of them can be withdrawn.
    """
    if by_name:
        monkeypatch.setattr(orders, "SUBMIT_BYTES", 500_000)
        monkeypatch.setattr(plans, "ASKED_EACH", 200)
    policy = stage.path / "fails.py"
    policy.write_text(FAILS)
    failing = [stage.spec(f"scripted/{policy}", id=f"f{n}") for n in range(3)]
    first = await plan_batch(control, batch_of(stage, failing), rerun_failed=False)
    await submit(control, first)
    assert len(await seen(control, first)) == 3
    await stage.client.get_workflow_handle(batch_workflow_id(stage.batch)).result()
    slow = stage.spec([{"code": "finish(1)", "delay": 3600.0}], id="slow")
    batch = batch_of(stage, [slow, *failing], concurrency=1)
    await submit(control, await plan_batch(control, batch, rerun_failed=True))
    await eventually(lambda: has_begun(control, stage, "slow"), "the first job runs")
    again = await plan_batch(control, batch, rerun_failed=False)
    assert [job.id for job in again.failed] == ["f0", "f1", "f2"]
    assert await goes_on(control, again)
    following = await with_those_to_come(control, again)
    assert [job.id for job in following.counted(Start.RERUN)] == ["f0", "f1", "f2"]
    assert await waits(control, JobKey(batch=stage.batch, job="f1"))
    await cancel(control, JobKey(batch=stage.batch, job="f1"))
    await cancel(control, JobKey(batch=stage.batch, job="slow"))
    ended = {event.outcome.key.job: event.outcome for event in await seen(control, following)}
    assert {job: ended[job].status for job in ended} == {
        "slow": JobStatus.CANCELLED,
        "f0": JobStatus.FAILED,
        "f1": JobStatus.CANCELLED,
        "f2": JobStatus.FAILED,
    }
    assert not {ended[f"f{n}"].run for n in range(3)} & {
        outcome.run for outcome in again.ended.values()
    }
    await stage.client.get_workflow_handle(batch_workflow_id(stage.batch)).result()
    assert not await goes_on(control, following)
    await histories(stage)


async def test_a_job_that_begins_again_while_a_command_begins_is_followed(
    stage: Stage, control: Control
) -> None:
    """Its end may be there before the batch is asked; where nothing is to come, nobody waits."""
    policy = stage.path / "policy.py"
    policy.write_text(FAILS)
    specs = [stage.spec(f"scripted/{policy}", id="f")]
    first = await plan_batch(control, batch_of(stage, specs), rerun_failed=False)
    await submit(control, first)
    (before,) = await seen(control, first)
    slow = stage.spec([{"code": "finish(1)", "delay": 3600.0}], id="slow")
    await submit(control, await plan_batch(control, batch_of(stage, [slow]), rerun_failed=False))
    late = await plan_batch(control, batch_of(stage, specs), rerun_failed=False)
    assert [job.id for job in late.failed] == ["f"]
    assert not await goes_on(control, late)
    assert await with_those_to_come(control, late) == late
    again = await plan_batch(control, batch_of(stage, specs, concurrency=2), rerun_failed=True)
    await submit(control, again)
    await eventually(lambda: _has_runs(stage, specs[0], 2), "it begins again")
    (ended,) = await seen(control, await with_those_to_come(control, late))
    assert ended.outcome.run not in {"", before.outcome.run}
    await cancel(control, JobKey(batch=stage.batch, job="slow"))
    await histories(stage)


async def _has_runs(stage: Stage, spec: JobSpec, number: int) -> bool:
    return len(stage.archive(spec).runs()) == number


@pytest.mark.parametrize("over", [False, True], ids=["meanwhile", "at-the-end"])
async def test_failed_jobs_are_started_again(stage: Stage, control: Control, over: bool) -> None:
    """As often as their definition says, as runs of the same job, each told with what it failed
    of, also to who asks when all is over; by a user once more, whether or not their pages are read
    by then.
    """
    policy = stage.path / "fails.py"
    policy.write_text(FAILS)
    fails = f"scripted/{policy}"
    specs = [
        stage.spec(fails, id="thrice", retry=Retry(times=2)),
        stage.spec(fails, id="once", retry=Retry(times=2, on=(Cause.PROVIDER, Cause.TOOL))),
        *(stage.spec([{"code": "finish(1)"}], id=f"j{n}") for n in range(8)),
    ]
    batch = batch_of(stage, specs)
    plan = await plan_batch(control, batch, rerun_failed=False)
    await submit(control, plan)
    if over:
        await stage.client.get_workflow_handle(batch_workflow_id(stage.batch)).result()
    events = await seen(control, plan)
    assert [
        (event.outcome.key.job, event.again, event.outcome.cause)
        for event in events
        if isinstance(event, Retried)
    ] == [("thrice", 1, "error"), ("thrice", 2, "error")]
    ended = {event.outcome.key.job: event.outcome for event in events if isinstance(event, Ended)}
    assert (ended["thrice"].status, ended["once"].status) == (JobStatus.FAILED, JobStatus.FAILED)
    assert len(ended) == 10
    assert [len(stage.archive(spec).runs()) for spec in specs[:3]] == [3, 1, 1]
    rerun = await plan_batch(control, batch, rerun_failed=True)
    assert [job.id for job in rerun.counted(Start.RERUN)] == ["thrice", "once"]
    for _ in range(2):
        await submit(control, rerun)
    assert sum(isinstance(event, Ended) for event in await seen(control, rerun)) == 2
    await submit(control, rerun)
    await stage.client.get_workflow_handle(batch_workflow_id(stage.batch)).result()
    assert [len(stage.archive(spec).runs()) for spec in specs[:3]] == [6, 2, 1]
    await histories(stage)


async def test_a_job_that_is_reset_after_its_batch_went_on_in_another_run_is_followed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reset ends the run that the batch knew; the job ends as the newest one does."""
    monkeypatch.setattr(batches, "MOST_EVENTS", 30)
    slow = stage.order(["x = 1", {"code": "finish(x)", "delay": 3600.0}], id="slow")
    others = [stage.order([{"code": "finish(1)"}], id=f"j{n}") for n in range(6)]
    batch = await stage.submit(slow, *others, concurrency=2)
    archive = JobArchive(stage.store, stage.batch, "slow")
    await turn_of(archive, 1)

    async def went_on() -> bool:
        newest = await stage.client.get_workflow_handle(batch.id).describe()
        return newest.run_id != batch.first_execution_run_id

    await eventually(went_on, "the batch goes on in another run")
    for statement in ("x = 2", "finish(7)"):
        run = archive.runs()[-1]
        made = await reset_job(stage, "slow", rerun(stage, "slow", run, 1, statement=statement))
        await eventually(lambda run=made.run: run in archive.runs(), "the new run begins")
    assert (await batch.result()).ended == dict.fromkeys(
        ("slow", *(f"j{n}" for n in range(6))), JobStatus.SUCCEEDED
    )
    await histories(stage)


async def test_a_job_of_the_run_before_is_withdrawn_while_another_starts(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is cancelled at once, and not left to its natural end."""
    monkeypatch.setattr(batches, "MOST_EVENTS", 30)
    slow = stage.order([{"code": "finish(1)", "delay": 3600.0}], id="slow")
    others = [stage.order([{"code": "finish(1)"}], id=f"j{n}") for n in range(6)]
    last = stage.order([{"code": "finish(1)"}], id="last")
    start = workflow.start_child_workflow

    async def held(run: Any, job: JobOrder, **how: Any) -> Any:
        """Start a job; the last one when the wish has come."""
        batch = workflow.instance()
        if job.key.job == "last":
            await workflow.wait_condition(lambda: "slow" in batch.children.unwanted)
        return await start(run, job, **how)

    monkeypatch.setattr(workflow, "start_child_workflow", held)
    batch = await stage.submit(slow, *others, concurrency=2)
    newest = stage.client.get_workflow_handle_for(BatchWorkflow.run, batch.id)

    async def only_slow_runs() -> bool:
        went_on = (await newest.describe()).run_id != batch.first_execution_run_id
        return went_on and (await newest.query(BatchWorkflow.state)).open == ("slow",)

    await eventually(only_slow_runs, "the batch goes on in another run")
    state = await newest.execute_update(
        BatchWorkflow.submit, Submission(jobs=(last,), concurrency=2)
    )
    assert state.waiting == ("last",)
    await newest.signal(BatchWorkflow.withdraw, Note.of("slow"))
    key = JobKey(batch=stage.batch, job="slow")

    async def has_ended() -> bool:
        return await Control(stage.client, stage.store).outcome(key) is not None

    await eventually(has_ended, "the withdrawn job ends")
    ended = (await batch.result()).ended
    assert (ended["slow"], ended["last"]) == (JobStatus.CANCELLED, JobStatus.SUCCEEDED)
    await histories(stage)


async def test_a_withdrawn_job_that_is_gone_from_the_server_holds_nothing_up(
    stage: Stage, control: Control
) -> None:
    """The batch goes on to its pages, though it cannot cancel that job, and ends."""
    kept = stage.order([{"code": "finish(1)"}], id="kept")
    keeper = await stage.client.start_workflow(
        JobWorkflow.run,
        kept,
        id=job_workflow_id(kept.key),
        task_queue=f"{stage.queue}-nobody",
    )
    open_ = (
        Followed(job="ghost", run=str(uuid.uuid4())),
        # While it is open, so is the batch.
        Followed(job="kept", run=keeper.result_run_id or ""),
    )
    batch = await stage.client.start_workflow(
        BatchWorkflow.run,
        BatchOrder(batch=stage.batch, carried=BatchCarried(concurrency=4, open=open_)),
        id=batch_workflow_id(stage.batch),
        task_queue=batch_queue(stage.batch),
        memo={"archive": archive_id(stage.store)},
        # With the start: it would know soon that the job is gone.
        start_signal="withdraw",
        start_signal_args=[Note.of("ghost")],
    )

    async def has_failed() -> bool:
        history = await batch.fetch_history()
        return bool(events_of(history, "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED"))

    await eventually(has_failed, "the job cannot be cancelled")
    specs = [stage.spec([{"code": "finish(1)"}], id=f"j{n}") for n in range(6)]
    plan = await plan_batch(control, batch_of(stage, specs, concurrency=4), rerun_failed=False)
    await submit(control, plan)
    for spec in specs:
        await eventually(lambda job=spec.id: ends(control, stage, job), "a job of a page ends")
    await keeper.terminate()
    await batch.result()
    await replayer().replay_workflow(await batch.fetch_history())


async def test_the_memo_of_a_batch_names_the_queues_of_what_it_was_given_later(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Crews look there, for those of open jobs too, also when the batch goes on in another run."""
    monkeypatch.setattr(batches, "MOST_EVENTS", 30)
    slow = stage.order([{"code": "finish(1)", "delay": 3600.0}], id="slow")
    batch = await stage.submit(slow, concurrency=2, routes=Routes(archive="x", models=("one/*",)))
    others = tuple(stage.order([{"code": "finish(1)"}], id=f"j{n}") for n in range(6))
    await batch.execute_update(
        BatchWorkflow.submit,
        Submission(jobs=others, concurrency=2, routes=Routes(archive="x", tools=("two:f",))),
    )
    newest = stage.client.get_workflow_handle(batch.id)

    async def went_on() -> bool:
        return (await newest.describe()).run_id != batch.first_execution_run_id

    async def named() -> bool:
        query = f"{open_on(stage.queue)} AND WorkflowType = 'BatchWorkflow'"
        return await queues_of(stage.client, query) == {"model:one/*@x", "tool:two:f@x"}

    await eventually(named, "the memo names all queues")
    await eventually(went_on, "the batch goes on in another run")
    await eventually(named, "the memo names them still")
    await batch.signal(BatchWorkflow.withdraw, Note.of("slow"))
    await batch.result()
    await histories(stage)
