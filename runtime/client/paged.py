"""The orders in the pages of a batch, and which of their jobs have not begun."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from activities.batch_contracts import PageRef
from runtime.archive.gaps import UNREADABLE
from runtime.archive.job import JobArchive
from runtime.archive.pages import readable_pages
from runtime.archive.stores import ObjectStore
from runtime.base.values import JobKey
from workflows.messages import BatchState


def orders_in(store: ObjectStore, pages: Iterable[PageRef]) -> Iterator[dict[str, Any]]:
    """The orders in pages, as JSON has them. A page that cannot be read is passed over: its batch
    tells of it when that is its turn.

    Raises:
        ArchiveError: if the store cannot be read.
    """
    for _, orders in readable_pages(store, (page.digest for page in pages)):
        yield from orders


def names_in(store: ObjectStore, pages: Iterable[PageRef]) -> set[str]:
    """The jobs of pages, of those that can be read.

    Raises:
        ArchiveError: if the store cannot be read.
    """
    return {order["key"]["job"] for order in orders_in(store, pages)}


def in_pages(store: ObjectStore, state: BatchState, known: Collection[str]) -> list[str]:
    """The jobs of pages that have not begun. Of those that are not ``known`` none has.

    Raises:
        ArchiveError: if the store cannot be read.
    """
    return [
        order["key"]["job"]
        for order in orders_in(store, state.pages)
        if order["key"]["job"] not in known
        or not has_begun(store, JobKey.model_validate(order["key"]), order["id"])
    ]


def has_begun(store: ObjectStore, key: JobKey, order: str) -> bool:
    """Whether a run of the job has carried the order out, as far as the archive can be read."""
    try:
        return JobArchive.of(store, key).carried_out_by(order) is not None
    except UNREADABLE:
        # Listed as damaged, since the archive has something of it.
        return True
