"""A job that is paused, and batches whose budget is granted in slices, on a real server."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import Any

import pytest
from stage import Stage, replayer
from temporalio.client import WorkflowHandle

from runtime.base.spec.models import Amount, BatchBudget, Budget, Retry
from runtime.base.values import JobKey
from runtime.base.workflow_ids import job_workflow_id
from runtime.client.own_runs import describe
from runtime.job.purse import Ask
from runtime.job.stops import Cause, JobStatus
from tests.eventually import SECONDS, eventually, until_phase, until_turn
from tests.servers.openai_server import OpenAIProtocol
from tests.servers.provider_server import ProviderServer
from workflows import slices
from workflows.batch import BatchWorkflow
from workflows.granting import Granting
from workflows.job import JobWorkflow
from workflows.messages import JobOutcome, Note, Submission

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

PRICE = {"input": 10, "output": 10}
"""US dollars per million tokens."""


async def until_begun(stage: Stage, job: WorkflowHandle[Any, Any]) -> None:
    """Wait until a batch has started a job."""

    async def there() -> bool:
        return await describe(stage.client, job.id) is not None

    await eventually(there, f"{job.id} has begun")


async def test_a_paused_job_begins_no_turn_until_it_is_resumed(stage: Stage) -> None:
    """Wishes that come twice count once, and the last of several counts."""
    spec = stage.spec(["wait(600)", "x = 1", "finish(x)"])
    handle = await stage.start(spec)
    await until_phase(handle, "asleep")
    pause = Note.of()
    await handle.signal(JobWorkflow.pause, pause)
    await handle.signal(JobWorkflow.message, Note.of("Wake up."))
    await until_phase(handle, "paused")
    progress = await handle.query(JobWorkflow.progress)
    assert progress.turn == 1
    await handle.signal(JobWorkflow.resume, Note.of())
    await handle.signal(JobWorkflow.pause, pause)
    await until_turn(handle, 2)
    outcome = await handle.result()
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 3)


async def test_a_job_that_is_paused_while_it_waits_for_a_slice_begins_no_turn(
    stage: Stage,
) -> None:
    """The slice that it is granted meanwhile is for when it is resumed."""
    orders = (
        stage.order([{"code": "finish(1)", "delay": 3600.0}], id="other"),
        stage.order(["x = 1", "finish(x)"], id="a"),
    )
    batch = await stage.submit(*orders, concurrency=2, budget=BatchBudget(turns=2))
    job = stage.client.get_workflow_handle(job_workflow_id(orders[1].key), result_type=JobOutcome)
    await until_begun(stage, job)
    await until_phase(job, "waiting for a slice of the batch's budget")
    await job.signal(JobWorkflow.pause, Note.of())
    larger = Submission(jobs=(), concurrency=2, budget=BatchBudget(turns=100))
    await batch.execute_update(BatchWorkflow.submit, larger)
    await until_phase(job, "paused")
    assert (await job.query(JobWorkflow.progress)).turn == 1
    await job.signal(JobWorkflow.resume, Note.of())
    outcome = await asyncio.wait_for(job.result(), SECONDS)
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 2)
    await batch.signal(BatchWorkflow.withdraw, Note.of("other"))
    await batch.result()
    await replayer().replay_workflow(await job.fetch_history())


async def test_a_kind_that_a_batchs_budget_bounds_no_more_holds_no_job_up(stage: Stage) -> None:
    """A job that began with slices of it goes on, and asks for no more of it."""
    order = stage.order(["wait(600)", *["x = 1"] * 3, "finish(x)"], id="a")
    # Its first slice is one turn.
    batch = await stage.submit(order, concurrency=2, budget=BatchBudget(turns=8, usd=100.0))
    job = stage.client.get_workflow_handle(job_workflow_id(order.key), result_type=JobOutcome)
    await until_begun(stage, job)
    await until_phase(job, "asleep")
    other = Submission(jobs=(), concurrency=2, budget=BatchBudget(usd=100.0))
    await batch.execute_update(BatchWorkflow.submit, other)
    await job.signal(JobWorkflow.message, Note.of("Wake up."))
    outcome = await asyncio.wait_for(job.result(), SECONDS)
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 5)
    await batch.result()
    await replayer().replay_workflow(await job.fetch_history())


async def test_a_batch_spends_no_more_than_its_budget(stage: Stage) -> None:
    """Jobs begin with slices, ask for more, and end with the reason when there is none."""
    names = ("a", "b", "c")
    orders = tuple(
        stage.order(
            ["x = 1"] * 40,
            id=name,
            budget=Budget(turns=40, tokens=10**9, usd=1000.0),
            model_options={"price": PRICE},
        )
        for name in names
    )
    handle = await stage.submit(*orders, concurrency=2, budget=BatchBudget(usd=0.5))
    state = await handle.result()
    assert set(state.ended.values()) == {JobStatus.BUDGET}
    outcomes: list[JobOutcome] = []
    for name in names:
        stage.started.append(job_workflow_id(JobKey(batch=stage.batch, job=name)))
        job = stage.client.get_workflow_handle(stage.started[-1], result_type=JobOutcome)
        outcomes.append(await job.result())
    assert 0.3 < sum(outcome.cost_usd for outcome in outcomes) <= 0.5
    words = "what is left of the batch's budget ($0.50) holds no other call"
    assert all(outcome.reason.startswith(words) for outcome in outcomes)
    await replayer().replay_workflow(await handle.fetch_history())


async def test_a_slice_that_comes_while_a_call_is_under_way_is_used(stage: Stage) -> None:
    """Jobs whose first slices hold one call each, of a budget that holds all calls, succeed."""
    names = ("a", "b", "c", "d")
    orders = tuple(stage.order(["x = 1", "x = 2", "finish(x)"], id=name) for name in names)
    handle = await stage.submit(*orders, concurrency=2, budget=BatchBudget(tokens=30_000))
    state = await handle.result()
    assert state.ended == dict.fromkeys(names, JobStatus.SUCCEEDED)
    for name in names:
        job = stage.client.get_workflow_handle(job_workflow_id(JobKey(batch=stage.batch, job=name)))
        await replayer().replay_workflow(await job.fetch_history())


async def test_a_wish_that_was_lost_is_asked_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker of an older release drops what it cannot read: here the wish ahead, and the first
    of the job that waits.
    """
    heard: list[Ask] = []
    ask = Granting.ask

    def dropping(granting: Granting, wish: Ask) -> None:
        heard.append(wish)
        if len(heard) > 2:
            ask(granting, wish)

    monkeypatch.setattr(Granting, "ask", dropping)
    monkeypatch.setattr(slices, "ASKS_AGAIN", timedelta(seconds=1))
    order = stage.order(["x = 1", "finish(x)"], id="a")
    # Its first slice is one turn.
    handle = await stage.submit(order, concurrency=2, budget=BatchBudget(turns=8))
    state = await handle.result()
    assert state.ended == {"a": JobStatus.SUCCEEDED}
    assert [wish.waits for wish in heard[:3]] == [False, True, True]
    job = stage.client.get_workflow_handle(job_workflow_id(order.key))
    await replayer().replay_workflow(await job.fetch_history())


@pytest.mark.parametrize("budget", [None, BatchBudget(turns=100)])
async def test_a_job_that_the_batch_does_not_hold_ends_with_the_reason(
    stage: Stage, budget: BatchBudget | None
) -> None:
    """As one that was reset after an earlier run of its batch had ended: it has used up what that
    run granted it.
    """
    other = stage.order([{"code": "finish(1)", "delay": 3600.0}], id="other")
    batch = await stage.submit(other, concurrency=1, budget=budget)
    stranger = stage.order(["x = 1", "x = 2", "finish(x)"], id="a")
    stage.started.append(job_workflow_id(stranger.key))
    job = await stage.client.start_workflow(
        JobWorkflow.run,
        stranger.model_copy(update={"granted": Amount(turns=1)}),
        id=stage.started[-1],
        task_queue=stage.queue,
    )
    outcome = await asyncio.wait_for(job.result(), SECONDS)
    assert (outcome.status, outcome.turns) == (JobStatus.BUDGET, 1)
    assert outcome.reason == "the run of the batch that granted the job what it may spend has ended"
    await batch.signal(BatchWorkflow.withdraw, Note.of("other"))
    await batch.result()
    await replayer().replay_workflow(await batch.fetch_history())


async def test_failed_attempts_that_use_up_a_slice_end_no_job(stage: Stage) -> None:
    """It gets another slice and calls again; what they cost is of its batch's budget."""
    used = {"prompt_tokens": 15_000, "completion_tokens": 0, "total_tokens": 15_000}
    error = {"type": "server_error", "message": "Broke", "usage": used}
    broken = {"text": "Well", "error_after": 0, "error": error, "times": 99}
    answers = [broken, {"code": "finish(1)"}]
    async with ProviderServer(OpenAIProtocol(), lambda _m, n: answers[n - 1]).serving() as server:
        options = {"api_base": f"{server.address}/v1", "api_key": "sk-local", "price": PRICE}
        order = stage.order("openai/local", id="a", model_options={**options, "max_tokens": 300})
        # The first slice is an eighth: $0.125, and the attempt that failed cost $0.15.
        handle = await stage.submit(order, concurrency=2, budget=BatchBudget(usd=1.0))
        await handle.result()
    stage.started.append(job_workflow_id(order.key))
    job = stage.client.get_workflow_handle(stage.started[-1], result_type=JobOutcome)
    outcome = await job.result()
    assert (outcome.status, outcome.reason) == (JobStatus.SUCCEEDED, "finished")
    assert outcome.usage.prompt > 15_000
    await replayer().replay_workflow(await handle.fetch_history())
    await replayer().replay_workflow(await job.fetch_history())


async def test_failed_attempts_count_over_all_slices(stage: Stage) -> None:
    """A provider that breaks after each stream that was paid for fails the job, as ``retry`` says:
    it does not spend its batch's budget.
    """
    used = {"prompt_tokens": 15_000, "completion_tokens": 0, "total_tokens": 15_000}
    error = {"type": "server_error", "message": "Broke", "usage": used}
    broken = {"text": "Well", "error_after": 0, "error": error, "times": 99}
    async with ProviderServer(OpenAIProtocol(), lambda _m, _n: broken).serving() as server:
        options = {"api_base": f"{server.address}/v1", "api_key": "sk-local", "price": PRICE}
        order = stage.order(
            "openai/local",
            id="a",
            model_options={**options, "max_tokens": 300},
            retry=Retry(attempts=3),
        )
        # An attempt is more than a slice, six are less than the budget.
        handle = await stage.submit(order, concurrency=2, budget=BatchBudget(usd=1.0))
        await handle.result()
        asked = len(server.exchanges)
    stage.started.append(job_workflow_id(order.key))
    job = stage.client.get_workflow_handle(stage.started[-1], result_type=JobOutcome)
    outcome = await job.result()
    assert (outcome.status, outcome.cause, asked) == (JobStatus.FAILED, Cause.PROVIDER, 3)
    assert outcome.cost_usd == 0.45
    assert outcome.reason.startswith(
        "turn 1: 3 attempts failed, and 'retry' allows no other; with the last slice, 1 failed"
        " attempt used 15,000 tokens and $0.1500"
    )
    assert outcome.reason.endswith("; the last: ServerError: Broke")
    await replayer().replay_workflow(await job.fetch_history())


async def test_no_job_waits_for_an_attempt_longer_than_it_may(stage: Stage) -> None:
    """A provider asks for half an hour, of a job that has ten minutes: it ends, and says so, also
    where its batch has more to grant.
    """
    late = {"fail": {"status": 429, "message": "Slow down", "retry_after": 1_800}, "times": 99}
    budget = Budget(turns=50, usd=1000.0, tokens=10**9, wall_seconds=600.0)
    order = stage.order([late], id="a", budget=budget)
    handle = await stage.submit(order, concurrency=2, budget=BatchBudget(usd=1.0))
    await asyncio.wait_for(handle.result(), SECONDS)
    stage.started.append(job_workflow_id(order.key))
    job = stage.client.get_workflow_handle(stage.started[-1], result_type=JobOutcome)
    outcome = await job.result()
    assert outcome.status is JobStatus.BUDGET
    budget_line, _, attempts = outcome.reason.partition("; turn 1: ")
    assert re.fullmatch(
        r"the wall budget of 600 s has \w+ left, too little for another attempt", budget_line
    )
    assert attempts.endswith(
        ", and the provider asks to wait 30m; the last: RateLimitError: Slow down (HTTP 429)"
    )
    await replayer().replay_workflow(await job.fetch_history())
