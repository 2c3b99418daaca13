"""What came of the jobs of a batch: rows from the archive, and how the unfinished ones stand where
the server is in reach.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError

from runtime.archive.catalog import all_jobs
from runtime.archive.job import JobArchive
from runtime.archive.reading import read_ahead
from runtime.archive.standings import ResultRow, result_row
from runtime.archive.stores import ObjectStore
from runtime.base.standings import GOING_ON, OPEN, QUEUED
from runtime.base.values import JobKey
from runtime.client.control import Control
from runtime.client.paged import names_in
from runtime.client.standing import run_outcome
from runtime.client.statuses import UNKNOWN, told_of
from runtime.job.stops import JobStatus
from workflows.messages import BatchState

PORTION = 64
"""Rows that are told at a time."""

MOST_ASKED = 64
"""Of so many open jobs each is asked what it does, or waits for; of more, their batch."""


@dataclass(frozen=True)
class Known:
    """The jobs of a batch, sorted by id, and what the batch says of those that have not ended.

    ``paged`` are those of pages that the batch has not come to; some may have ended before.
    ``untold``: the batch runs, and no worker answers for it, so that jobs that wait are not here.
    """

    ids: list[str]
    open: frozenset[str] = frozenset()
    waiting: frozenset[str] = frozenset()
    paged: frozenset[str] = frozenset()
    untold: bool = False


@dataclass(frozen=True)
class Results:
    """The rows of a batch, sorted by id; ``control`` is None where no server is in reach."""

    store: ObjectStore
    batch: str
    control: Control | None = None

    async def known(self) -> Known:
        """The jobs that began, and those that wait."""
        # First: what waits then, and begins meanwhile, would be in neither of the two.
        state = await self._state()
        begun = await asyncio.to_thread(all_jobs, self.store, self.batch)
        ids = {key.job for key in begun}
        if state is None or self.control is None:
            return Known(sorted(ids))
        if state == BatchState():
            return Known(sorted(ids), untold=True)
        paged = frozenset(await asyncio.to_thread(names_in, self.store, state.pages))
        return Known(
            ids=sorted(ids.union(state.waiting, state.open, paged)),
            open=frozenset(state.open),
            waiting=frozenset(state.waiting),
            paged=paged,
        )

    async def rows(self, known: Known) -> AsyncIterator[ResultRow]:
        """A row for each of the jobs, few of them in memory at a time."""
        read = read_ahead(known.ids, self._row)
        # In a thread, a portion at a time: the store may be far away.
        while rows := await asyncio.to_thread(lambda: list(islice(read, PORTION))):
            for row in await asyncio.gather(*(self._live(row, known) for row in rows)):
                yield row

    async def _state(self) -> BatchState | None:
        """What the batch says of its jobs; None where nobody can be asked."""
        try:
            return await self.control.batch_state(self.batch) if self.control else None
        # Results are the archive's first of all: the server's word is an extra.
        except RPCError:
            return None

    def _row(self, id: str) -> ResultRow:
        return result_row(JobArchive(self.store, self.batch, id))

    async def _live(self, row: ResultRow, known: Known) -> ResultRow:
        """The row, with how the job stands now if it has not ended."""
        # Of one that is half deleted the archive says why it has no end.
        if row.status == OPEN and row.reason:
            return row
        not_begun = row.id in known.paged and row.status == OPEN and row.run is None
        # It waited when the batch was asked, and has come to its end since.
        over = row.status == JobStatus.SUCCEEDED
        if (row.id in known.waiting and not over) or not_begun:
            return replace(row, status=QUEUED, reason="waits for a place in its batch")
        if row.status != OPEN or self.control is None:
            return row
        # A batch does not know its jobs' sub-jobs.
        if row.id in known.open or (row.parent and known.open):
            return await self._open(row, known, self.control)
        try:
            return await self._left(row, self.control)
        except RPCError:
            return row

    async def _left(self, row: ResultRow, control: Control) -> ResultRow:
        """The row of a job that the archive has open and its batch does not: as Temporal has it. No
        worker is asked, for there may be none, and many such jobs.
        """
        key = JobKey(batch=self.batch, job=row.id)
        newest = await control.newest(key)
        if newest is None:
            return replace(row, reason=UNKNOWN)
        if newest.status is WorkflowExecutionStatus.RUNNING:
            return row
        outcome = await run_outcome(control.client, key, newest)
        return await self._told(row, outcome.status.value, outcome.reason)

    async def _open(self, row: ResultRow, known: Known, control: Control) -> ResultRow:
        """The row of a job that its batch has open, or of a sub-job: as it says itself, where few
        are.
        """
        key, told = JobKey(batch=self.batch, job=row.id), {}
        if len(known.open) <= MOST_ASKED:
            with suppress(RPCError):
                told = await told_of(control, [key])
        # Else the batch's word: to ask each open job itself costs requests for each.
        word = JobStatus.RUNNING.value if row.id in known.open else row.status
        return await self._told(row, *told.get(key, (word, "")))

    async def _told(self, row: ResultRow, status: str, reason: str) -> ResultRow:
        """The row of an open job with what was told of it; of one that has ended since the row was
        read, with all that came of it.
        """
        if status not in GOING_ON:
            row = await asyncio.to_thread(self._row, row.id)
        # What was ended in Temporal itself has no end in the archive.
        return replace(row, status=status, reason=reason) if row.status == OPEN else row
