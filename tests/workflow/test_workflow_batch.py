"""A batch whose jobs are not wanted any more: those that wait, and those that have just got their place."""

from __future__ import annotations

import pytest
from stage import Stage, replayer

from runtime.base.values import JobKey
from runtime.job.stops import JobStatus
from workflows.batch import BatchWorkflow
from workflows.messages import BatchOrder, JobOrder, Note, Submission, batch_workflow_id, job_workflow_id

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


async def test_wishes_are_for_jobs_that_wait_or_run_and_may_come_twice(stage: Stage) -> None:
    """Whether a wish finds its job waiting, starting or running, the job ends as cancelled, once, and the batch ends."""
    orders = tuple(
        JobOrder(
            key=JobKey(batch=stage.batch, job=name),
            spec=stage.spec([{"code": "finish(1)", "delay": delay}], id=name),
            definition="d",
        )
        for name, delay in (("first", 60.0), ("second", 60.0), ("third", 0.0))
    )
    handle = await stage.client.start_workflow(
        BatchWorkflow.run, BatchOrder(batch=stage.batch), id=batch_workflow_id(stage.batch), task_queue=stage.queue
    )
    await handle.execute_update(BatchWorkflow.submit, Submission(jobs=orders, concurrency=1))
    for name in ("second", "second", "first", "first", "nobody"):
        await handle.signal(BatchWorkflow.withdraw, Note.of(name))
    state = await handle.result()
    assert state.ended == {
        "first": JobStatus.CANCELLED,
        "second": JobStatus.CANCELLED,
        "third": JobStatus.SUCCEEDED,
    }
    for name, reason in (("first", "cancelled"), ("second", "cancelled before it began")):
        job = stage.client.get_workflow_handle(job_workflow_id(JobKey(batch=stage.batch, job=name)))
        outcome = await job.result()
        assert (outcome["status"], outcome["reason"]) == ("cancelled", reason)
        await replayer().replay_workflow(await job.fetch_history())
    await replayer().replay_workflow(await handle.fetch_history())
