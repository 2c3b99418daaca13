"""What a batch asks of the world holds it up for ever in no case."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage import Stage
from temporalio.testing import ActivityEnvironment

from activities.batch_contracts import AgainOrder, Followed, FollowOrder, PageOrder, PageRef
from activities.batches import BatchActivities
from runtime.archive.job import JobArchive
from runtime.archive.pages import write_page
from runtime.archive.stores import open_store
from runtime.base.values import JobKey
from runtime.base.workflow_ids import job_workflow_id
from tests.eventually import forgotten
from workflows.job import JobWorkflow

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


async def test_a_job_that_the_server_forgot_has_ended(stage: Stage) -> None:
    """It is not asked for again and again, so that its batch would never end."""
    order = stage.order(["finish(1)"])
    handle = await stage.client.start_workflow(
        JobWorkflow.run, order, id=job_workflow_id(order.key), task_queue=f"{stage.queue}-nobody"
    )
    await forgotten(stage.client, handle.id)
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
