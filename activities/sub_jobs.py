"""Starting sub-jobs, each once however often that is asked for; and ending those that are left.

A sub-job's name is made of what its job asked it (``workflows/sub_jobs.py``). So a try that finds
its workflow, or its definition in the archive, has found the one that a try before has started:
that of a worker that was killed, or of a run that was reset since.
"""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import activity
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import CancelledError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from activities._masked import masked_order
from activities._recorded_effects import NOT_RECORDED, recorded_value
from activities.sub_job_contracts import OpenSubJobs, Spawned, SpawnOrder, SubJobEnds
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore
from runtime.base.failpoints import failpoint
from runtime.base.spec.limits import Routes, memo_of
from runtime.base.values import JobKey
from runtime.base.workflow_ids import JOB_WORKFLOW, TASK_LIMIT, job_workflow_id, summary_of
from runtime.context.sub_job_end import SubJobEnd


class SubJobActivities:
    """``spawn_job``, ``find_sub_jobs`` and ``end_sub_jobs``."""

    def __init__(self, store: ObjectStore, client: Client) -> None:
        self._store = store
        self._client = client

    @activity.defn(name="spawn_job")
    async def spawn_job(self, order: SpawnOrder) -> Spawned:
        """The sub-job, which runs from now on, or did before.

        Raises:
            ArchiveError: the archive cannot be read or written.
            RPCError: the server cannot be reached.
        """
        archive = JobArchive.of(self._store, order.key)
        address = activity.info().workflow_run_id or "", order.turn, order.effect
        if (recorded := order.recorded) is not None:
            kept = await asyncio.to_thread(recorded_value, self._store, recorded, archive, address)
            if kept is None:
                return Spawned(error_type="RuntimeError", error_message=NOT_RECORDED)
            return Spawned.model_validate(kept)
        kept = await asyncio.to_thread(archive.effect, *address)
        if kept is None:
            failpoint("spawn.before")
            spawned = await self._spawned(order)
            failpoint("spawn.started")
            value = spawned.model_dump(mode="json")
            kept = await asyncio.to_thread(archive.write_effect, *address, value)
        failpoint("spawn.recorded")
        return Spawned.model_validate(kept)

    async def _spawned(self, order: SpawnOrder) -> Spawned:
        names = {"job": str(order.child), "parent": str(order.key)}
        if order.refused:
            return Spawned(error_type="RuntimeError", error_message=f"spawn(): {order.refused}")
        archive = JobArchive.of(self._store, order.child)
        # By the archive, since the server forgets an ended workflow when its retention is over.
        earlier = await asyncio.to_thread(archive.definition) is not None
        if not earlier:
            earlier = not await self._start(order)
        elif (end := await asyncio.to_thread(end_in, archive)) is not None:
            return Spawned(**names, ended=end)
        state = await self._state(order.child)
        if state is None:
            lost = f"the sub-job {order.child.job}, which was started before, is lost"
            return Spawned(error_type="RuntimeError", error_message=f"spawn(): {lost}")
        if state is WorkflowExecutionStatus.RUNNING:
            return Spawned(**names, earlier=earlier)
        end = await asyncio.to_thread(end_in, archive)
        return Spawned(**names, ended=end or _unrecorded(order.child, state.name))

    async def _start(self, order: SpawnOrder) -> bool:
        """Start its workflow. Whether no try before has."""
        masked = await asyncio.to_thread(masked_order, order.order)
        routes = masked.get("routes")
        try:
            await self._client.start_workflow(
                JOB_WORKFLOW,
                masked,
                id=job_workflow_id(order.child),
                task_queue=order.queue,
                # Also one that has ended is the one: a second of that name would spend its budget
                # again.
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                task_timeout=TASK_LIMIT,
                static_summary=summary_of(str(masked["spec"]["goal"])),
                memo={
                    "definition": masked["definition"],
                    **memo_of(Routes.model_validate(routes) if routes else None),
                },
            )
        except WorkflowAlreadyStartedError:
            return False
        return True

    async def _state(self, child: JobKey) -> WorkflowExecutionStatus | None:
        """The state of its workflow; None if the server knows of none."""
        try:
            workflow = await self._client.get_workflow_handle(job_workflow_id(child)).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise
        return workflow.status

    @activity.defn(name="find_sub_jobs")
    async def find_sub_jobs(self, open_: OpenSubJobs) -> SubJobEnds:
        """How those ended that have ended, by the archive."""
        archives = [JobArchive.of(self._store, job) for job in open_.jobs]
        ends = [await asyncio.to_thread(end_in, archive) for archive in archives]
        return SubJobEnds(ends=tuple(end for end in ends if end is not None))

    @activity.defn(name="end_sub_jobs")
    async def end_sub_jobs(self, open_: OpenSubJobs) -> SubJobEnds:
        """Cancel what still runs, and wait for it."""
        ends = await asyncio.gather(*(self._ended(job) for job in open_.jobs))
        return SubJobEnds(ends=tuple(ends))

    async def _ended(self, child: JobKey) -> SubJobEnd:
        archive = JobArchive.of(self._store, child)
        handle: WorkflowHandle[Any, Any] = self._client.get_workflow_handle(
            job_workflow_id(child), result_type=dict[str, Any]
        )
        how = "failed"
        try:
            await handle.cancel()
            await handle.result()
        except WorkflowFailureError as error:
            how = "cancelled" if isinstance(error.cause, CancelledError) else how
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
        end = await asyncio.to_thread(end_in, archive)
        return end or _unrecorded(child, how)


def end_in(archive: JobArchive) -> SubJobEnd | None:
    """How the archive says that the newest run of a job ended, if it has: be it before a call."""
    end = archive.newest_end()
    if end is None:
        return None
    lent = end.lent
    return SubJobEnd(
        job=str(archive.job),
        status=end.status,
        reason=end.reason,
        turns=end.turns + (lent.turns or 0 if lent else 0),
        tokens=end.usage.total + (lent.tokens or 0 if lent else 0),
        usd=round(end.cost_usd + (lent.usd or 0.0 if lent else 0.0), 9),
    )


def _unrecorded(child: JobKey, how: str) -> SubJobEnd:
    """The end of a job of which the archive has none, so that nobody knows what it spent."""
    status = "cancelled" if how.lower() == "cancelled" else "failed"
    reason = "it ended without a record of its end"
    return SubJobEnd(job=str(child), status=status, reason=reason, lost=True)
