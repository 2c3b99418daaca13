"""A batch whose task was lost again and again, as by workers that were killed, takes what it is
given once a worker lives.
"""

from __future__ import annotations

import asyncio

import pytest
from stage import Stage
from temporalio import workflow
from temporalio.client import WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from runtime.base.errors import ServerError
from runtime.base.spec.models import BatchSpec
from runtime.base.workflow_ids import batch_workflow_id
from runtime.client import submission
from runtime.client.control import Control
from runtime.client.plans import Plan
from runtime.client.submission import submit
from tests.eventually import eventually
from workflows.batch import BatchWorkflow
from workflows.messages import BatchOrder, BatchState, Submission, batch_queue

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]


@workflow.defn(name="BatchWorkflow")
class Lost:
    """A batch none of whose tasks ends."""

    @workflow.run
    async def run(self, order: BatchOrder) -> None:
        """Fail the task."""
        raise RuntimeError("lost")


async def lost(handle: WorkflowHandle[BatchWorkflow, BatchState]) -> bool:
    """Whether the task that is due was lost three times."""
    return (await handle.describe()).raw_description.pending_workflow_task.attempt > 3


async def test_an_update_waits_for_a_worker_that_carries_the_task_out(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server refuses it after three lost tasks; ``submit`` gives it again until it is taken,
    and says at last that nobody takes it.
    """
    batch = f"{stage.batch}-lost"  # no other worker serves it
    queue = batch_queue(batch)
    handle = await stage.client.start_workflow(
        BatchWorkflow.run, BatchOrder(batch=batch), id=batch_workflow_id(batch), task_queue=queue
    )

    def worker(of: type) -> Worker:
        return Worker(
            stage.client,
            task_queue=queue,
            workflows=[of],
            workflow_runner=UnsandboxedWorkflowRunner(),
        )

    async with worker(Lost):
        await eventually(lambda: lost(handle), "the task is lost three times")
    with pytest.raises(RPCError) as refused:
        await handle.execute_update(BatchWorkflow.submit, Submission(jobs=(), concurrency=3))
    assert refused.value.status is RPCStatusCode.FAILED_PRECONDITION
    nothing = Plan(BatchSpec(batch=batch, concurrency=3, jobs=()), ())
    with monkeypatch.context() as hurried:
        hurried.setattr(submission, "READY_TRIES", 2)
        with pytest.raises(ServerError, match=r"^no worker gets on with the batch: "):
            await submit(Control(stage.client, stage.store), nothing)
    submitted = asyncio.create_task(submit(Control(stage.client, stage.store), nothing))
    async with worker(BatchWorkflow):
        await submitted
        assert (await handle.result()).ended == {}
