"""Workflows that the server keeps for the worker that has them in memory: a task of theirs waits
for that one, and only when it has waited for long is it anybody's.

How long is a matter of two things that pull apart. A task that is in line at a busy worker must not
be given to another, which would replay the whole run: each that is makes the line longer for all.
And a task of a worker that has died waits for nobody. So it waits for long, and who finds that a
worker has died says that its workflows are anybody's.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetStickyTaskQueueRequest
from temporalio.client import Client
from temporalio.client import WorkflowExecution as Open
from temporalio.service import RPCError, RPCStatusCode

from runtime.server.gathered import gathered
from runtime.server.histories import backwards

STICKY = timedelta(seconds=10)
"""How long a workflow's next task waits for the worker that has it in memory; then any worker
replays it.

By 3 s every third turn of 200 jobs that do nothing but turns, in two processes on two cores, was
given away, and all took half as long again. By this none is; of a thousand such jobs every third.
"""


async def release(client: Client, open_: Iterable[Open], identity: str) -> None:
    """Have the server keep none of the open workflows for the worker ``identity``, which has died.
    A task that is in line there stays in it until ``STICKY`` is over.

    Raises:
        RPCError: if the server does not answer.
    """

    async def one(workflow: Open) -> None:
        execution = WorkflowExecution(workflow_id=workflow.id, run_id=workflow.run_id)
        try:
            if await _last_worker(client, execution) == identity:
                await client.workflow_service.reset_sticky_task_queue(
                    ResetStickyTaskQueueRequest(namespace=client.namespace, execution=execution),
                    retry=True,
                )
        except RPCError as error:
            # It has ended in the meantime.
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise

    await gathered(one, open_)


async def _last_worker(client: Client, execution: WorkflowExecution) -> str | None:
    """Who did the workflow's last task; None if none is done yet."""
    async for event in backwards(client, execution):
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            return event.workflow_task_completed_event_attributes.identity
    return None
