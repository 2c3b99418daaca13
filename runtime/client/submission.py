"""Handing the jobs of a plan that begin to their batch, which is started if it does not run.

Whatever is given twice begins nothing twice.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowExecutionStatus,
    WorkflowUpdateFailedError,
)
from temporalio.common import (
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.service import RPCError, RPCStatusCode

from activities.searchable import has_attributes
from runtime.archive.catalog import archive_id
from runtime.archive.spending import spent_in
from runtime.archive.stores import ObjectStore
from runtime.base.errors import DefinitionChanged, ServerError
from runtime.base.failpoints import failpoint
from runtime.base.roles import own_roles
from runtime.base.search_attributes import Attribute
from runtime.base.spec.limits import Routes, memo_of
from runtime.base.spec.models import BatchSpec
from runtime.base.workflow_ids import BATCH_WORKFLOW, batch_workflow_id
from runtime.client.control import Control
from runtime.client.limits import routes_of, set_limits
from runtime.client.orders import submission_of
from runtime.client.own_runs import describe
from runtime.client.plans import Plan, Start
from workflows.messages import BatchOrder, Submission, batch_queue

# 90 s in all, which is more than the 60 s for which the server waits for a task that was lost.
READY_TRIES, READY_SECONDS = 180, 0.5
"""How often a batch is given an update that it cannot take yet, and the pause between two tries."""


async def plan_queues(store: ObjectStore, plan: Plan) -> tuple[str, ...]:
    """The queues by which limited calls of the plan's jobs go: its workers work on them too."""
    archive = await asyncio.to_thread(archive_id, store)
    routes = routes_of(plan.spec.limits, plan.spec.priority, archive)
    return routes.queues if routes is not None else ()


async def submit(control: Control, plan: Plan) -> None:
    """Start what the plan starts, and set the batch's concurrency.

    Giving the same plan twice starts nothing twice.

    Needs a worker of the batch.

    Raises:
        DefinitionChanged: if one of the jobs was started meanwhile with another definition.
        ServerError: if no worker gets on with the batch.
    """
    batch = plan.spec
    archive = await asyncio.to_thread(archive_id, control.store)
    split = own_roles() is not None
    routes = routes_of(batch.limits, batch.priority, archive, queues=plan.queues, roles=split)
    if routes is not None:
        # Before the first call can go by these queues.
        await set_limits(control.client, routes, batch.limits)
    try:
        if plan.new or plan.counted(Start.RERUN):
            submission = await submission_of(control.store, plan, routes)
            failpoint("submit.before")
            memo = _memo(control.store, archive, routes)
            await _when_ready(partial(_submit, control, plan.batch, submission, memo))
            failpoint("submit.after")
        else:
            await _set_concurrency(control.client, plan.spec)
    except WorkflowUpdateFailedError as error:
        raise DefinitionChanged(
            f"{error.cause}. Give the same command again to see what changed"
        ) from error


async def submit_again(control: Control, plan: Plan, routes: Routes | None) -> None:
    """Start anew what the plan starts, by these ``routes``.

    Needs no worker: a batch that has none does so when one comes. Giving the same plan twice starts
    nothing twice.
    """
    submission = await submission_of(control.store, plan, routes)
    archive = await asyncio.to_thread(archive_id, control.store)
    failpoint("retry.before")
    handle = control.client.get_workflow_handle(batch_workflow_id(plan.batch))
    begins = await _for_a_run_that_begins(
        control, plan.batch, submission, lambda: handle.signal("retry", submission)
    )
    if begins is not None:
        memo = _memo(control.store, archive, routes)
        await _begin_by_retry(control.client, plan.batch, begins, memo)
    failpoint("retry.after")


async def _submit(
    control: Control, batch: str, submission: Submission, memo: dict[str, Any]
) -> None:
    """Hand jobs to the batch, which is started if it does not run."""
    handle = control.client.get_workflow_handle(batch_workflow_id(batch))
    begins = await _for_a_run_that_begins(
        control, batch, submission, lambda: handle.execute_update("submit", submission)
    )
    if begins is None:
        return
    await control.client.execute_update_with_start_workflow(
        "submit",
        begins,
        start_workflow_operation=WithStartWorkflowOperation(
            BATCH_WORKFLOW,
            BatchOrder(batch=batch),
            id=batch_workflow_id(batch),
            task_queue=batch_queue(batch),
            # One that runs takes the jobs in; one that has ended begins again under its name.
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            memo=memo,
            search_attributes=await _found_by(control.client, batch),
        ),
    )


async def _begin_by_retry(
    client: Client, batch: str, submission: Submission, memo: dict[str, Any]
) -> None:
    await client.start_workflow(
        BATCH_WORKFLOW,
        BatchOrder(batch=batch),
        id=batch_workflow_id(batch),
        task_queue=batch_queue(batch),
        start_signal="retry",
        start_signal_args=[submission],
        # As for an update.
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        memo=memo,
        search_attributes=await _found_by(client, batch),
    )


async def _set_concurrency(client: Client, batch: BatchSpec) -> None:
    """Tell a batch that runs of its concurrency, which may have changed since it was started."""
    handle = client.get_workflow_handle(batch_workflow_id(batch.batch))
    try:
        told = Submission(
            # The same update without jobs: it brings the figures alone.
            jobs=(),
            concurrency=batch.concurrency,
            budget=batch.budget,
            on_finish=batch.on_finish,
            id=uuid.uuid4().hex,
        )
        await _when_ready(lambda: handle.execute_update("submit", told))
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise


async def _for_a_run_that_begins(
    control: Control, batch: str, submission: Submission, give: Callable[[], Awaitable[object]]
) -> Submission | None:
    """The submission, with what the batch's jobs have spent of its budget; None if the batch runs,
    and so knows that itself: then it was given the submission by ``give``.
    """
    if submission.budget is None:
        return submission
    description = await describe(control.client, batch_workflow_id(batch))
    if description is not None and description.status is WorkflowExecutionStatus.RUNNING:
        try:
            await give()
        except RPCError as error:
            # It has ended meanwhile, and its last jobs spent what only the archive knows.
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
        else:
            return None
    spent = await asyncio.to_thread(spent_in, control.store, batch)
    return submission.model_copy(update={"spent": spent})


async def _when_ready(update: Callable[[], Awaitable[object]]) -> None:
    """Carry out a batch's update.

    The server refuses it while the batch's task was lost several times in a row, with its workers.

    A worker that lives carries that task out, within the time that the server waits for the last
    one that was lost.

    Raises:
        RPCError: as the update.
        ServerError: no worker takes the task up, or it fails with each that does.
    """
    for left in reversed(range(READY_TRIES)):
        try:
            await update()
        except RPCError as error:
            if error.status is not RPCStatusCode.FAILED_PRECONDITION:
                raise
            if not left:
                raise ServerError(
                    f"no worker gets on with the batch: {error.message} What workers log says why;"
                    " a batch that a newer release went on with waits for its workers"
                ) from error
            await asyncio.sleep(READY_SECONDS)
        else:
            return


def _memo(store: ObjectStore, archive: str, routes: Routes | None) -> dict[str, Any]:
    """What workers read of a batch before they take it."""
    return {"archive": archive, "store": str(store), **memo_of(routes)}


async def _found_by(client: Client, batch: str) -> TypedSearchAttributes:
    """What Temporal's list finds a batch's workflow by, beside its jobs."""
    if not await has_attributes(client):
        return TypedSearchAttributes.empty
    name = SearchAttributeKey.for_keyword(Attribute.BATCH)
    return TypedSearchAttributes([SearchAttributePair(name, batch)])
