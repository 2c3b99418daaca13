"""Which jobs may be deleted: those that nobody works for any more, as far as anybody knows."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from temporalio.client import Client, WorkflowExecutionStatus

from runtime.archive import keys
from runtime.archive.catalog import all_jobs
from runtime.archive.gaps import UNREADABLE
from runtime.archive.job import JobArchive
from runtime.archive.reading import read_ahead
from runtime.archive.standings import parent_of, standing_of
from runtime.archive.stores import ObjectStore
from runtime.base.values import JobKey
from runtime.base.workflow_ids import batch_workflow_id, job_workflow_id
from runtime.client.own_runs import describe
from runtime.server.gathered import gathered


async def still_open(
    store: ObjectStore, client: Client | None, jobs: Collection[JobKey], *, unfinished: bool
) -> dict[JobKey, str]:
    """Why some of the jobs may not be deleted: they run, or may yet.

    ``client`` is None where no server is in reach: then the archive's word is all there is.
    ``unfinished``: jobs without an end, and their sub-jobs, may go too, if no server works for
    them.

    Raises:
        RPCError: if the server fails.
    """
    reasons: dict[JobKey, str] = {}
    if client is not None:
        reasons |= await _running(client, jobs)
    if not unfinished:
        asked = [job for job in jobs if job not in reasons]
        for job in await asyncio.to_thread(_unfinished, store, asked):
            reasons[job] = "it has no end in the archive (--unfinished: delete it all the same)"
        asked = [job for job in asked if job not in reasons]
        for job, parent in (await asyncio.to_thread(_waited_for, store, asked)).items():
            reasons[job] = f"it is a sub-job of {parent}, which has no end in the archive"
    return reasons


def _unfinished(store: ObjectStore, jobs: Collection[JobKey]) -> list[JobKey]:
    """Those of the jobs without an end; one that was deleted is over, and may have left what it
    shared.
    """
    return [
        job
        for job in open_jobs(store, jobs)
        if any(store.list(f"{keys.job_prefix(job.batch, job.job)}/"))
    ]


def _waited_for(store: ObjectStore, jobs: Collection[JobKey]) -> dict[JobKey, JobKey]:
    """Those of the jobs that are sub-jobs of unfinished ones, each with that one: where Temporal's
    database is lost, it hears of their ends from the archive alone.
    """

    def look(job: JobKey) -> JobKey | None:
        try:
            parent = parent_of(JobArchive.of(store, job))
        except UNREADABLE:
            return None
        return JobKey(batch=job.batch, job=parent) if parent else None

    parents = dict(zip(jobs, read_ahead(jobs, look), strict=True))
    unfinished = set(_unfinished(store, {one for one in parents.values() if one is not None}))
    return {job: parent for job, parent in parents.items() if parent in unfinished}


def open_jobs(store: ObjectStore, jobs: Collection[JobKey] | None = None) -> list[JobKey]:
    """Those of the jobs (all, where none are given) that have not ended, as the archive has it."""

    def look(job: JobKey) -> JobKey | None:
        return job if standing_of(JobArchive.of(store, job)).end is None else None

    asked = sorted(all_jobs(store) if jobs is None else jobs, key=str)
    return [job for job in read_ahead(asked, look) if job is not None]


async def _running(client: Client, jobs: Collection[JobKey]) -> dict[JobKey, str]:
    async def runs(workflow_id: str) -> bool:
        told = await describe(client, workflow_id)
        return told is not None and told.status is WorkflowExecutionStatus.RUNNING

    batches = sorted({job.batch for job in jobs})
    open_batches = await gathered(runs, map(batch_workflow_id, batches))
    # A batch that runs may start any of its jobs again.
    busy = {batch for batch, open in zip(batches, open_batches, strict=True) if open}
    left = sorted(jobs)
    open_jobs = await gathered(runs, map(job_workflow_id, left))
    of_busy_batches = {job: f"its batch {job.batch} runs" for job in left if job.batch in busy}
    running = (job for job, open in zip(left, open_jobs, strict=True) if open)
    return of_busy_batches | dict.fromkeys(running, "it is open: it runs, or waits for a worker")
