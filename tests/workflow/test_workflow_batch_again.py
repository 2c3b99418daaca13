"""A batch that has ended and is given again: what its jobs have spent is spent."""

from __future__ import annotations

import pytest
from stage import Stage, replayer
from temporalio.client import Client, WorkflowExecutionDescription

from runtime.archive import keys
from runtime.archive.job import JobArchive
from runtime.archive.spending import spent_in
from runtime.base.spec.models import BatchBudget, BatchSpec
from runtime.base.values import JobKey
from runtime.base.workflow_ids import batch_workflow_id
from runtime.client import submission
from runtime.client.control import Control
from runtime.client.own_runs import describe
from runtime.client.planning import plan_batch
from runtime.client.submission import submit
from runtime.client.wishes import hold_batch
from runtime.job.stops import JobStatus
from runtime.worker.worker import make_worker
from tests.eventually import eventually
from workflows.messages import batch_queue

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


def five_turns(archive: JobArchive) -> bool:
    """Whether a run of the job has had so many."""
    return any(sum(1 for _ in archive.steps(run)) == 5 for run in archive.runs())


async def test_a_batch_that_ends_as_it_is_given_again_begins_with_what_is_left(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client that saw it run tells its next run what was spent."""
    control = Control(stage.client, stage.store)
    slow = stage.spec([*["x = 1"] * 5, {"code": "finish(1)", "delay": 3600.0}], id="slow")
    batch = BatchSpec(batch=stage.batch, concurrency=1, jobs=(slow,), budget=BatchBudget(turns=8))
    more = batch.model_copy(update={"jobs": (slow, stage.spec(["x = 1"] * 40, id="more"))})
    handle = stage.client.get_workflow_handle(batch_workflow_id(stage.batch))

    async def ends_then(client: Client, workflow: str) -> WorkflowExecutionDescription | None:
        """What the server says of the batch that runs, which has ended when that is heard."""
        description = await describe(client, workflow)
        await hold_batch(control, stage.batch, "withdraw_all")
        await handle.result()
        return description

    async with make_worker(stage.client, stage.store, task_queue=batch_queue(stage.batch)):
        await submit(control, await plan_batch(control, batch, rerun_failed=False))
        await eventually(lambda: five_turns(stage.archive(slow)), "the sixth turn is under way")
        plan = await plan_batch(control, more, rerun_failed=False)
        monkeypatch.setattr(submission, "describe", ends_then)
        await submit(control, plan)
        assert (await handle.result())["ended"] == {"more": "budget"}
    await replayer().replay_workflow(await handle.fetch_history())
    assert spent_in(stage.store, stage.batch).turns == 8


async def test_a_budget_that_a_batch_is_given_while_it_runs_counts_from_then_on(
    stage: Stage,
) -> None:
    """What its jobs had spent before is not taken off."""
    control = Control(stage.client, stage.store)
    slow = stage.spec([*["x = 1"] * 5, {"code": "finish(1)", "delay": 3600.0}], id="slow")
    batch = BatchSpec(batch=stage.batch, concurrency=2, jobs=(slow,))
    more = batch.model_copy(
        update={
            "jobs": (slow, stage.spec(["x = 1"] * 40, id="more")),
            "budget": BatchBudget(turns=8),
        }
    )
    async with make_worker(stage.client, stage.store, task_queue=batch_queue(stage.batch)):
        await submit(control, await plan_batch(control, batch, rerun_failed=False))
        await eventually(lambda: five_turns(stage.archive(slow)), "the sixth turn is under way")
        await submit(control, await plan_batch(control, more, rerun_failed=False))
        key = JobKey(batch=stage.batch, job="more")

        async def has_ended() -> bool:
            return await control.outcome(key) is not None

        await eventually(has_ended, "the job with the budget ends")
        await hold_batch(control, stage.batch, "withdraw_all")
        handle = stage.client.get_workflow_handle(batch_workflow_id(stage.batch))
        await handle.result()
    outcome = await control.outcome(key)
    assert outcome is not None
    assert (outcome.status, outcome.turns) == (JobStatus.BUDGET, 8)
    await replayer().replay_workflow(await handle.fetch_history())


async def test_a_batch_that_begins_again_has_what_is_left_of_its_budget(stage: Stage) -> None:
    """With more jobs, and with jobs that are begun anew: all their runs together keep it."""
    control = Control(stage.client, stage.store)
    specs = [stage.spec(["x = 1"] * 40, id=name) for name in ("a", "b")]

    async def turns_after(jobs: int, turns: int, *, rerun: bool) -> int | None:
        """What all jobs have spent after the first so many ran with that budget."""
        batch = BatchSpec(
            batch=stage.batch,
            concurrency=1,
            jobs=tuple(specs[:jobs]),
            budget=BatchBudget(turns=turns, tokens=10**9),
        )
        await submit(control, await plan_batch(control, batch, rerun_failed=rerun))
        handle = stage.client.get_workflow_handle(batch_workflow_id(stage.batch))
        await handle.result()
        await replayer().replay_workflow(await handle.fetch_history())
        spent = spent_in(stage.store, stage.batch)
        tokens = [
            step.usage.total
            for spec in specs[:jobs]
            for run in stage.archive(spec).runs()
            for step in stage.archive(spec).steps(run)
        ]
        assert (spent.turns, spent.tokens) == (len(tokens), sum(tokens))
        return spent.turns

    async with make_worker(stage.client, stage.store, task_queue=batch_queue(stage.batch)):
        assert await turns_after(1, 8, rerun=False) == 8
        assert await turns_after(2, 12, rerun=False) == 12
        assert await turns_after(2, 15, rerun=True) == 15
    # The start of a run may be lost; what it spent is not.
    first, last = stage.archive(specs[0]).runs()
    for run in (first, last):
        stage.store.remove(keys.run_key(f"{stage.batch}/{specs[0].id}", run))
        assert spent_in(stage.store, stage.batch).turns == 15
