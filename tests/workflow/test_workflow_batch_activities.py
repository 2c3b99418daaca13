"""What a batch asks of the world holds it up for ever in no case."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage import Stage
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment

from activities.batch_contracts import AgainOrder, Followed, FollowOrder, PageOrder, PageRef
from activities.batches import BatchActivities
from runtime.archive.job import JobArchive
from runtime.archive.pages import write_page
from runtime.archive.stores import open_store
from runtime.base.values import JobKey
from runtime.base.workflow_ids import job_workflow_id
from tests.eventually import eventually
from workflows.job import JobWorkflow
from workflows.messages import JobOutcome

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


async def deleted(client: Client, handle: WorkflowHandle[JobWorkflow, JobOutcome]) -> None:
    """Has the server forget a workflow."""
    execution = WorkflowExecution(workflow_id=handle.id, run_id=handle.result_run_id)
    await client.workflow_service.delete_workflow_execution(
        DeleteWorkflowExecutionRequest(namespace=client.namespace, workflow_execution=execution)
    )

    async def gone() -> bool:
        try:
            await handle.describe()
        except RPCError as error:
            return error.status is RPCStatusCode.NOT_FOUND
        return False

    await eventually(gone, "the server has forgotten it")


async def test_a_job_that_the_server_forgot_has_ended(stage: Stage) -> None:
    """It is not asked for again and again, so that its batch would never end."""
    order = stage.order(["finish(1)"])
    handle = await stage.client.start_workflow(
        JobWorkflow.run, order, id=job_workflow_id(order.key), task_queue=f"{stage.queue}-nobody"
    )
    await deleted(stage.client, handle)
    batches = BatchActivities(open_store(str(stage.path)), stage.client)
    asked = FollowOrder(
        batch=order.key.batch, jobs=(Followed(job=order.key.job, run=handle.result_run_id or ""),)
    )

    (end,) = (await ActivityEnvironment().run(batches.follow_jobs, asked)).ends
    assert (end.job, end.outcome, end.cancelled) == (order.key.job, None, False)


async def test_a_definition_that_cannot_be_read_holds_up_no_other_job(
    stage: Stage, tmp_path: Path
) -> None:
    """Its job has begun, and is not begun again; the rest of its page is."""
    root = tmp_path / "archive"
    store = open_store(str(root))
    jobs = [JobKey(batch="night", job=job) for job in ("harmed", "whole")]
    digest = write_page(store, [{"key": key.model_dump(), "id": "order"} for key in jobs])
    JobArchive.of(store, jobs[0]).write_definition({"goal": "x"})
    (path,) = (root / "night" / "harmed" / "definition").iterdir()
    path.chmod(0o600)
    path.write_bytes(b"damaged")
    batches = BatchActivities(open_store(str(root)), stage.client)
    order = PageOrder(batch="night", pages=(PageRef(digest=digest, jobs=2),))

    read = await ActivityEnvironment().run(batches.read_batch_page, order)
    assert [one["key"]["job"] for one in read.orders] == ["whole"]
    assert read.begun == ("harmed",)
    again = AgainOrder(key=jobs[0])
    assert (await ActivityEnvironment().run(batches.definition_of_job, again)).spec is None
