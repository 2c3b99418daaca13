"""Withdrawing jobs that are still in pages of their batch: those are parted from the others in new
pages, and the batch is told of pages, however many jobs there are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from activities.batch_contracts import PageRef
from runtime.archive.pages import readable_pages, write_page
from runtime.archive.stores import ObjectStore
from runtime.base.workflow_ids import batch_workflow_id
from runtime.client.control import Control
from workflows.messages import BatchState, PageSplit, Withdrawal

SPLITS = 1_000
"""Pages of which one signal tells: some 350 bytes each."""


async def withdraw(control: Control, batch: str, jobs: Collection[str]) -> frozenset[str]:
    """Have those of the jobs that are in pages of a running batch end as cancelled; which they are.

    Those that a page has are withdrawn wherever they are when the batch hears of it.
    """
    state = await control.batch_state(batch)
    if state is None or not state.pages:
        return frozenset()
    splits, named = await asyncio.to_thread(_split, control.store, state, frozenset(jobs))
    handle = control.client.get_workflow_handle(batch_workflow_id(batch))
    for start in range(0, len(splits), SPLITS):
        some = tuple(splits[start : start + SPLITS])
        await handle.signal("withdraw_pages", Withdrawal(splits=some))
    return named


def _split(
    store: ObjectStore, state: BatchState, jobs: frozenset[str]
) -> tuple[list[PageSplit], frozenset[str]]:
    """How the pages are parted, and which of the jobs are in them."""
    splits: list[PageSplit] = []
    named: set[str] = set()
    for page, orders in readable_pages(store, (page.digest for page in state.pages)):
        unwanted: list[Mapping[str, Any]] = [
            order for order in orders if order["key"]["job"] in jobs
        ]
        if not unwanted:
            continue
        named.update(order["key"]["job"] for order in unwanted)
        rest: list[Mapping[str, Any]] = [
            order for order in orders if order["key"]["job"] not in jobs
        ]
        splits.append(
            PageSplit(
                page=page,
                unwanted=_written(store, unwanted),
                rest=_written(store, rest) if rest else None,
            )
        )
    return splits, frozenset(named)


def _written(store: ObjectStore, orders: list[Mapping[str, Any]]) -> PageRef:
    return PageRef(digest=write_page(store, orders), jobs=len(orders))
