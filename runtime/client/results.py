"""What came of the jobs of a batch: rows from the archive, and how the unfinished ones stand where
the server is in reach.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from itertools import islice

from temporalio.service import RPCError

from runtime.archive.catalog import all_jobs
from runtime.archive.job import JobArchive
from runtime.archive.reading import read_ahead
from runtime.archive.standings import ResultRow, result_row
from runtime.archive.stores import ObjectStore
from runtime.base.standings import OPEN, QUEUED
from runtime.base.values import JobKey
from runtime.client.control import Control
from runtime.job.stops import JobStatus
from workflows.messages import BatchState

PORTION = 64
"""Rows that are told at a time."""


@dataclass(frozen=True)
class Results:
    """The rows of a batch, sorted by id; ``control`` is None where no server is in reach."""

    store: ObjectStore
    batch: str
    control: Control | None = None

    async def ids(self) -> tuple[list[str], BatchState | None]:
        """The jobs that began, and those that wait; and what the batch says of them."""
        begun = await asyncio.to_thread(all_jobs, self.store, self.batch)
        state = await self._state()
        names = {key.job for key in begun}
        if state is not None and state.pages and self.control is not None:
            paged = await self.control.paged_names(state.pages) - names
            state = state.model_copy(update={"waiting": (*state.waiting, *sorted(paged))})
        waiting = state.waiting if state is not None else ()
        return sorted({*names, *waiting}), state

    async def rows(self, ids: list[str], state: BatchState | None) -> AsyncIterator[ResultRow]:
        """A row for each of the ids, few of them in memory at a time."""
        read = read_ahead(ids, self._row)
        while rows := await asyncio.to_thread(lambda: list(islice(read, PORTION))):
            for row in await asyncio.gather(*(self._live(row, state) for row in rows)):
                yield row

    async def _state(self) -> BatchState | None:
        """What the batch says of its jobs; None where nobody can be asked."""
        try:
            return await self.control.batch_state(self.batch) if self.control else None
        except RPCError:
            return None

    def _row(self, id: str) -> ResultRow:
        return result_row(JobArchive(self.store, self.batch, id))

    async def _live(self, row: ResultRow, state: BatchState | None) -> ResultRow:
        """The row, with how the job stands now if it has not ended."""
        if state is not None and row.id in state.waiting:
            return replace(row, status=QUEUED, reason="waits for a place in its batch")
        if row.status != OPEN or self.control is None:
            return row
        if state is not None and row.id in state.open:
            return replace(row, status=JobStatus.RUNNING.value)
        try:
            outcome = await self.control.outcome(JobKey(batch=self.batch, job=row.id))
        except RPCError:
            return row
        if outcome is None:
            return row
        return replace(row, status=outcome.status.value, reason=outcome.reason)
