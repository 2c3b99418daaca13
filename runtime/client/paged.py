"""The jobs of a batch that are in its pages, and have not begun."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from runtime.archive.gaps import UNREADABLE
from runtime.archive.job import JobArchive
from runtime.archive.pages import readable_pages
from runtime.archive.stores import ObjectStore
from runtime.base.values import JobKey
from workflows.messages import BatchState


def in_pages(store: ObjectStore, state: BatchState, known: Collection[str]) -> list[str]:
    """The jobs of pages that have not begun. Of those that are not ``known`` none has.

    A page that cannot be read is passed over: its batch tells of it when that is its turn.

    Raises:
        ArchiveError: if the store cannot be read.
    """
    return [
        order["key"]["job"]
        for _, orders in readable_pages(store, (page.digest for page in state.pages))
        for order in orders
        if order["key"]["job"] not in known or not _has_begun(store, order)
    ]


def _has_begun(store: ObjectStore, order: dict[str, Any]) -> bool:
    archive = JobArchive.of(store, JobKey.model_validate(order["key"]))
    try:
        return archive.carried_out_by(order["id"]) is not None
    except UNREADABLE:
        # Listed as damaged, since the archive has something of it.
        return True
