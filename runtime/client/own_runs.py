"""Which of the runs under a job's workflow id are the job's own.

A local server lets everybody start a workflow under any id that is not in use. What a stranger
starts ends at once, for its order is not signed, or was carried out by another run; but then it is
the newest run of that id, and says nothing about the job.
"""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio.api.history.v1 import WorkflowExecutionStartedEventAttributes
from temporalio.client import Client, WorkflowExecutionDescription
from temporalio.service import RPCError, RPCStatusCode

from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore
from runtime.base.values import JobKey
from runtime.base.workflow_ids import job_workflow_id
from runtime.server.authentic import NotSigned, Refusal, in_workflow


class OwnRuns:
    """Looks for the jobs' own runs. What was found of a run is remembered: it does not change."""

    def __init__(self, client: Client, store: ObjectStore) -> None:
        self._client = client
        self._store = store
        self._refused: dict[str, NotSigned | None] = {}

    async def newest(self, key: JobKey) -> WorkflowExecutionDescription | None:
        """The newest run that is the job's own; None if Temporal knows of none.

        Raises:
            NotSigned: if there is none, and one is signed or encrypted with another key: it may be
                this user's, of another state directory.
        """
        workflow_id = job_workflow_id(key)
        latest = await describe(self._client, workflow_id)
        if latest is None or (refused := await self._refusal(key, latest.run_id)) is None:
            return latest
        # Only where the newest is a stranger's: a list is a search on the server.
        listed = [one async for one in self._client.list_workflows(f"WorkflowId = '{workflow_id}'")]
        for one in sorted(listed, key=lambda run: run.start_time, reverse=True):
            other = await describe(self._client, workflow_id, one.run_id)
            if other is None:
                continue
            why = await self._refusal(key, other.run_id)
            if why is None:
                return other
            # A key that may be this user's tells more than that there is none.
            refused = why if why.refusal.may_be_ours else refused
        if refused.refusal.may_be_ours:
            raise refused
        return None

    async def _refusal(self, key: JobKey, run: str) -> NotSigned | None:
        """Why a run is none of the job's own, if it is none."""
        if run not in self._refused:
            self._refused[run] = await self._judged(key, run)
        return self._refused[run]

    async def _judged(self, key: JobKey, run: str) -> NotSigned | None:
        handle = self._client.get_workflow_handle(job_workflow_id(key), run_id=run)
        started = WorkflowExecutionStartedEventAttributes()
        async for event in handle.fetch_history_events(page_size=1):
            started = event.workflow_execution_started_event_attributes
            break
        if len(started.input.payloads) != 1:
            return NotSigned(
                f"run {run} of workflow {handle.id} began without an order", Refusal.UNSIGNED
            )
        try:
            (order,) = await in_workflow(self._client, handle.id).decode(
                started.input.payloads, [dict[str, Any]]
            )
        except NotSigned as error:
            return error
        archive = JobArchive.of(self._store, key)
        # A run that was continued or reset carries out the order of the first.
        taken = await asyncio.to_thread(archive.carried_out_by, str(order.get("id", "")))
        if taken in {None, started.first_execution_run_id}:
            return None
        return NotSigned(
            f"the order of run {run} of workflow {handle.id} was carried out by {taken}",
            Refusal.OTHER_PLACE,
        )


async def describe(
    client: Client, workflow_id: str, run: str | None = None
) -> WorkflowExecutionDescription | None:
    """What Temporal says of a workflow's newest run, or of ``run``; None if it does not know it."""
    try:
        return await client.get_workflow_handle(workflow_id, run_id=run).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise
