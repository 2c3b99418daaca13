"""Whether a job waits for its place in its batch: such a one has no workflow that could tell."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from temporalio.client import WorkflowExecutionStatus

from activities.batch_contracts import PageRef
from runtime.base.values import JobKey
from runtime.client.control import Control
from runtime.client.paged import has_begun, in_pages, orders_in
from runtime.client.submitted import submissions
from workflows.messages import BatchState


async def waits(control: Control, key: JobKey) -> bool:
    """Whether the job waits for its place in a batch that runs.

    Where no worker of the batch tells, its history does.
    """
    state = await control.batch_state(key.batch)
    if state is None:
        return False
    if state != BatchState():
        return key.job in state.waiting or await _is_paged(control, key, state)
    return await waits_by_history(control, key)


async def waits_by_history(control: Control, key: JobKey) -> bool:
    """As ``waits``, of a batch that runs and of which no worker tells."""
    newest = await control.newest(key)
    if newest is not None and newest.status is WorkflowExecutionStatus.RUNNING:
        return False
    orders = await _submitted(control, key)
    if newest is None:
        return bool(orders)
    # Of an order without an id nobody knows.
    return await asyncio.to_thread(
        lambda: any(order and not has_begun(control.store, key, order) for order in orders)
    )


async def _is_paged(control: Control, key: JobKey, state: BatchState) -> bool:
    """Whether a job is in one of the pages that are left, and has not begun by it."""
    if not state.pages or key.job in state.open:
        return False
    return key.job in await asyncio.to_thread(in_pages, control.store, state, {key.job})


async def _submitted(control: Control, key: JobKey) -> set[str]:
    """The ids of a job's orders that were given to its batch's newest run."""
    ids: set[str] = set()
    async for submission in submissions(control.client, key.batch):
        ids |= {order.id for order in submission.jobs if order.key == key}
        ids |= await _paged_orders(control, key, submission.pages)
    return ids


async def _paged_orders(control: Control, key: JobKey, pages: Iterable[PageRef]) -> set[str]:
    """The ids of a job's orders in pages, of those that can be read."""
    return await asyncio.to_thread(
        lambda: {
            str(order["id"])
            for order in orders_in(control.store, pages)
            if order["key"]["job"] == key.job
        }
    )
