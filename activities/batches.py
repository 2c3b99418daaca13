"""The activities of batches: reading their pages, and following the jobs of their earlier runs."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Iterable
from typing import Any

from temporalio import activity
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError
from temporalio.service import RPCError, RPCStatusCode

from activities.batch_contracts import (
    AgainOrder,
    Definition,
    Followed,
    FollowedEnd,
    FollowedEnds,
    FollowOrder,
    PageJobs,
    PageOrder,
)
from runtime.archive.gaps import UNREADABLE
from runtime.archive.job import JobArchive
from runtime.archive.pages import read_page
from runtime.archive.reading import read_ahead
from runtime.archive.stores import ObjectStore
from runtime.base.errors import ObjectCorrupt
from runtime.base.failpoints import failpoint
from runtime.base.values import JobKey
from runtime.base.workflow_ids import job_workflow_id

ENDS = 100
"""Ends that are told at once."""

PAGE_TRIES = 5
"""Attempts at a page that is not there, or damaged, before it is given up."""


class BatchActivities:
    """What a batch has done that touches the world."""

    def __init__(self, store: ObjectStore, client: Client) -> None:
        self._store = store
        self._client = client

    @activity.defn(name="read_batch_page")
    async def read_batch_page(self, order: PageOrder) -> PageJobs:
        """The orders of a page that no run has carried out yet.

        Giving the same jobs twice, in whatever pages, starts none twice.

        Raises:
            ArchiveError: if the page cannot be read.
            ApplicationError: which gives it up, if it is gone, or is not what was submitted; not
                where one job is looked for.
        """
        failpoint("page.before")
        jobs = await asyncio.to_thread(self._waiting, order)
        failpoint("page.after")
        return jobs

    def _waiting(self, order: PageOrder) -> PageJobs:
        orders: Iterable[dict[str, Any]] = (
            one
            for page in order.pages
            for one in self._page(page.digest, order.job)
            if order.job in {None, one["key"]["job"]}
        )
        if order.job is not None:
            # A job may stand in several pages; the first of them is the one that was submitted
            # last.
            orders = itertools.islice(orders, 1)
        waiting: list[dict[str, Any]] = []
        begun: list[str] = []
        for one, has_begun in read_ahead(orders, self._with_beginning):
            if has_begun:
                begun.append(one["key"]["job"])
            else:
                waiting.append(one)
        return PageJobs(orders=tuple(waiting), begun=tuple(begun))

    def _page(self, digest: str, job: str | None) -> list[dict[str, Any]]:
        """The orders of a page; none if it is given up while a ``job`` is looked for, which may be
        in another.
        """
        try:
            return read_page(self._store, digest)
        except UNREADABLE as error:
            if activity.info().attempt < PAGE_TRIES:
                raise
            if job is not None:
                return []
            # One that is there stays as it is where the same jobs are archived again.
            advice = "; remove this object" if isinstance(error, ObjectCorrupt) else ""
            raise ApplicationError(
                f"{error}{advice}", type=type(error).__name__, non_retryable=True
            ) from error

    def _with_beginning(self, order: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """An order, and whether it was carried out."""
        archive = JobArchive.of(self._store, JobKey.model_validate(order["key"]))
        try:
            return order, archive.carried_out_by(order["id"]) is not None
        except ObjectCorrupt:
            # It has begun, maybe with this order: no job is begun twice, nor its page held up.
            return order, True

    @activity.defn(name="follow_jobs")
    async def follow_jobs(self, order: FollowOrder) -> FollowedEnds:
        """Wait until one of the jobs has ended; all that have."""
        waiting = {asyncio.create_task(self._end(order.batch, job)) for job in order.jobs}
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            return FollowedEnds(ends=tuple(task.result() for task in done)[:ENDS])
        finally:
            for task in waiting:
                task.cancel()
            # Awaited, so that what was cancelled ends with the activity.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*waiting, return_exceptions=True)

    async def _end(self, batch: str, job: Followed) -> FollowedEnd:
        workflow, run = job_workflow_id(JobKey(batch=batch, job=job.job)), job.run
        while True:
            handle = self._client.get_workflow_handle(
                workflow, run_id=run, result_type=dict[str, Any]
            )
            try:
                return FollowedEnd(job=job.job, outcome=await handle.result())
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
                # Somebody deleted it there: of how it ended nobody will tell.
                return FollowedEnd(job=job.job)
            except WorkflowFailureError as error:
                newest = await self._client.get_workflow_handle(workflow).describe()
                # A reset ends a run by terminating it, and has another one go on in its chain.
                is_reset = newest.raw_info.first_run_id == job.run and newest.run_id != run
                if not (isinstance(error.cause, TerminatedError) and is_reset):
                    cancelled = isinstance(error.cause, CancelledError)
                    return FollowedEnd(job=job.job, cancelled=cancelled)
                run = newest.run_id

    @activity.defn(name="definition_of_job")
    async def definition_of_job(self, order: AgainOrder) -> Definition:
        """What a job was last defined as; None also if that cannot be read."""
        archive = JobArchive.of(self._store, order.key)
        try:
            return Definition(spec=await asyncio.to_thread(archive.definition))
        except ObjectCorrupt:
            return Definition(spec=None)
