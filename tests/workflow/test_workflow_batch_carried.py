"""A batch that goes on in another run, and what goes wrong beside its loop: no job is waited for in
vain, and none that nobody wants begins again.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from stage import FAILS, Stage, replayer
from temporalio.client import WorkflowHandle

from activities.batch_contracts import Followed
from runtime.archive.job import JobArchive
from runtime.archive.pages import write_page
from runtime.base.errors import InputError
from runtime.base.spec.models import BatchBudget, Retry
from runtime.base.workflow_ids import batch_workflow_id, job_workflow_id
from runtime.job.stops import JobStatus
from runtime.server.authentic import in_workflow
from tests.eventually import eventually
from tests.replay.replays import rerun, reset_job, turn_of
from workflows import batch as batches
from workflows import paging
from workflows.batch import BatchWorkflow
from workflows.messages import (
    BatchCarried,
    BatchOrder,
    BatchState,
    JobOrder,
    Note,
    PageRef,
    Submission,
)

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

FAILS_FIRST = """
import time
from pathlib import Path

def respond(messages):
    calls = Path(__file__).with_suffix(".calls")
    calls.write_text((calls.read_text() if calls.exists() else "") + ".")
    if len(calls.read_text()) <= 3:
        return "no statement"
    while not Path(__file__).with_suffix(".go").exists():
        time.sleep(0.02)
    return {"code": "finish(1)"}
"""

TAKEN_BACK = """
import re, time
from pathlib import Path

def respond(messages):
    here = Path(__file__)
    turn = int(re.findall(r"budget: turn (\\d+) of", messages[-1]["content"])[-1])
    while turn == 5 and not here.with_suffix(".over").exists():
        time.sleep(0.02)
    done = turn >= 3 and here.with_suffix(".go").exists()
    return {"code": "finish(1)" if done else f"x = {turn}"}
"""


async def begun(
    stage: Stage, carried: BatchCarried, **how: Any
) -> WorkflowHandle[BatchWorkflow, BatchState]:
    """A batch that begins with what a run before has left it."""
    return await stage.client.start_workflow(
        BatchWorkflow.run,
        BatchOrder(batch=stage.batch, carried=carried),
        id=batch_workflow_id(stage.batch),
        task_queue=stage.queue,
        **how,
    )


async def replays(stage: Stage, run: str | None = None) -> None:
    """A run of the batch, the newest if none is named, replays."""
    handle = stage.client.get_workflow_handle(batch_workflow_id(stage.batch), run_id=run)
    await replayer().replay_workflow(await handle.fetch_history())


@pytest.mark.parametrize("signal", ["withdraw", "withdraw_all"])
async def test_a_wish_that_comes_before_all_else_keeps_no_job_open(
    stage: Stage, signal: str
) -> None:
    """In the first task of a run: it begins a job, to end it, before the run follows those that the
    run before had started.
    """
    job = await stage.start(stage.spec([{"code": "finish(1)"}], id="x"))
    waits = stage.order([{"code": "finish(1)"}], id="y")
    batch = await begun(
        stage,
        BatchCarried(
            concurrency=1,
            open=(Followed(job="x", run=job.first_execution_run_id or ""),),
            waiting=(waits,),
        ),
        start_signal=signal,
        start_signal_args=[Note.of("y")],
    )
    ended = (await batch.result()).ended
    assert ended["y"] is JobStatus.CANCELLED
    assert ended["x"] is JobStatus.SUCCEEDED or signal == "withdraw_all"
    await replays(stage)


async def test_a_withdrawn_try_is_followed_as_histories_of_before_have_it(stage: Stage) -> None:
    """A job that waited for another try, and is cancelled before all else: its run before is
    followed, which a release before this one did, and the batch ends.
    """
    policy = stage.path / "fails.py"
    policy.write_text(FAILS)
    spec = stage.spec(f"scripted/{policy}", id="y")
    failed = await stage.start(spec)
    assert (await failed.result()).status is JobStatus.FAILED
    waits = stage.order(f"scripted/{policy}", id="y").model_copy(update={"id": "again"})
    batch = await begun(
        stage,
        BatchCarried(
            concurrency=1,
            waiting=(waits,),
            runs={"y": failed.first_execution_run_id or ""},
            tries={"y": 1},
        ),
        start_signal="withdraw",
        start_signal_args=[Note.of("y")],
    )
    assert set((await batch.result()).ended) == {"y"}
    history = await stage.client.get_workflow_handle(batch.id).fetch_history()
    called = [
        event.activity_task_scheduled_event_attributes.activity_id
        for event in history.events
        if event.HasField("activity_task_scheduled_event_attributes")
    ]
    assert "follow-1" in called
    await replays(stage)


async def test_a_job_that_nobody_wants_is_not_tried_again_by_the_next_run(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancel can come as a job fails by itself. The wish outlives the run of the batch."""
    monkeypatch.setattr(batches, "MOST_EVENTS", 20)
    spec = stage.spec([{"code": "finish(1)"}], id="x", retry=Retry(times=3))
    # On a queue where nobody works: it is open until the test ends it.
    job = await stage.client.start_workflow(
        "JobWorkflow",
        JobOrder(key=stage.order([], id="x").key, spec=spec, definition="d"),
        id=job_workflow_id(stage.order([], id="x").key),
        task_queue=f"{stage.queue}-nobody",
    )
    others = tuple(stage.order([{"code": "finish(1)"}], id=f"j{n}") for n in range(4))
    run = job.first_execution_run_id or ""
    batch = await begun(
        stage,
        BatchCarried(concurrency=2, open=(Followed(job="x", run=run),), waiting=others),
        start_signal="withdraw",
        start_signal_args=[Note.of("x")],
    )

    async def went_on() -> bool:
        return (await stage.client.get_workflow_handle(batch.id).describe()).run_id != (
            batch.first_execution_run_id
        )

    await eventually(went_on, "the batch goes on in another run")
    newest = stage.client.get_workflow_handle_for(BatchWorkflow.run, batch.id)
    started = (await newest.fetch_history()).events[0].workflow_execution_started_event_attributes
    converter = in_workflow(stage.client, batch.id)
    (order,) = await converter.decode(started.input.payloads, [BatchOrder])
    assert order.carried.dropped == ("x",)
    await job.terminate()
    assert (await newest.result()).ended["x"] is JobStatus.FAILED
    await replays(stage, batch.first_execution_run_id)
    await replays(stage)


async def test_a_failed_job_that_was_dropped_before_is_not_tried_again(stage: Stage) -> None:
    """As the run before would have done."""
    policy = stage.path / "fails.py"
    policy.write_text(FAILS)
    spec = stage.spec(f"scripted/{policy}", id="x", retry=Retry(times=3))
    job = await stage.start(spec)
    open_jobs = (Followed(job="x", run=job.first_execution_run_id or ""),)
    batch = await begun(stage, BatchCarried(concurrency=1, open=open_jobs, dropped=("x",)))
    assert (await batch.result()).ended == {"x": JobStatus.FAILED}
    assert len(stage.archive(spec).runs()) == 1
    await replays(stage)


async def test_what_this_code_cannot_read_waits_for_one_that_can(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of a newer release fails the workflow task, and not the batch, which would read no
    other page and never end.
    """
    tried: list[Any] = []

    def read(one: Any) -> JobOrder:
        tried.append(one)
        if len(tried) == 1:
            raise ValueError("a field that nobody knows")
        return JobOrder.model_validate(one)

    monkeypatch.setattr(paging, "JobOrder", SimpleNamespace(model_validate=read))
    order = stage.order([{"code": "finish(1)"}], id="x")
    page = PageRef(digest=write_page(stage.store, [order.model_dump(mode="json")]), jobs=1)
    batch = await stage.begin_batch()
    await batch.execute_update(
        BatchWorkflow.submit, Submission(jobs=(), pages=(page,), concurrency=1)
    )
    assert (await batch.result()).ended == {}
    assert len(tried) >= 2
    assert len(stage.archive(order.spec).runs()) == 1
    await replays(stage)


async def test_no_job_is_taken_back_beside_a_later_try_of_it(stage: Stage) -> None:
    """It would end that one, and its batch would wait for it for ever."""
    policy = stage.path / "fails.py"
    policy.write_text(FAILS_FIRST)
    order = stage.order(f"scripted/{policy}", id="x", retry=Retry(times=1))
    batch = await stage.submit(order, concurrency=1)
    archive = stage.archive(order.spec)

    async def tried_again() -> bool:
        return len(archive.runs()) == 2

    await eventually(tried_again, "the job is tried again")
    first, second = archive.runs()
    with pytest.raises(InputError, match=f"was started anew after run {first}, and runs"):
        await reset_job(stage, "x", rerun(stage, "x", first, 1))
    policy.with_suffix(".go").touch()
    assert (await batch.result()).ended == {"x": JobStatus.SUCCEEDED}
    assert archive.runs() == [first, second]
    made = await reset_job(stage, "x", rerun(stage, "x", second, 1))
    assert made.run not in {first, second}
    await stage.client.get_workflow_handle(job_workflow_id(order.key)).result()


async def test_what_was_spent_before_a_job_was_taken_back_is_not_there_for_others(
    stage: Stage,
) -> None:
    """Of eight turns of the batch it had five: what it had been granted by then counts."""
    policy = stage.path / "back.py"
    policy.write_text(TAKEN_BACK)
    x = stage.order(f"scripted/{policy}", id="x")
    y = stage.order([f"y = {n}" for n in range(5)] + ["finish(2)"], id="y")
    batch = await stage.submit(x, y, concurrency=1, budget=BatchBudget(turns=8))
    archive = stage.archive(x.spec)
    await turn_of(archive, 4)
    (run,) = archive.runs()
    policy.with_suffix(".go").touch()
    await eventually(lambda: in_flight(archive, 5), "its fifth call is in flight")
    await reset_job(stage, "x", rerun(stage, "x", run, 2))
    ended = (await batch.result()).ended
    policy.with_suffix(".over").touch()
    assert ended == {"x": JobStatus.SUCCEEDED, "y": JobStatus.BUDGET}
    others = stage.archive(y.spec)
    assert len(list(others.steps(others.runs()[-1]))) <= 3
    await replays(stage)


async def in_flight(archive: JobArchive, turn: int) -> bool:
    """Whether the call of a turn has begun."""
    return bool(archive.attempts(archive.runs()[-1], turn))
