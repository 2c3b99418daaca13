"""A query that has waited for a worker, of a workflow to which something has happened meanwhile."""

import asyncio
from datetime import timedelta

import pytest
from temporalio import workflow
from temporalio.api.enums.v1 import EventType, TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, Worker

from runtime.worker.taskwise import REFUSED, TaskwiseRunner
from tests.eventually import eventually
from tests.servers.temporal_server import temporal_server

pytestmark = pytest.mark.server

ONE_LINE = ("matching.numTaskqueueReadPartitions=1", "matching.numTaskqueueWritePartitions=1")
"""A server keeps a queue in parts, and a worker asks any of them: in one alone, what is given out
first is certain.
"""

QUEUE = "taskwise"
QUERIES = 8
"""As many as a worker asks for at once, and more."""

LIMIT = timedelta(seconds=2)
WAITED = timedelta(seconds=30)
"""As long as the server has a query wait for a worker."""


@workflow.defn
class Waiter:
    """Goes on by how long it has waited for a word."""

    def __init__(self) -> None:
        self._woken = False

    @workflow.run
    async def run(self) -> None:
        began = workflow.time()
        await workflow.wait_condition(lambda: self._woken)
        if workflow.time() == began:
            workflow.start_activity("hurry", schedule_to_close_timeout=timedelta(hours=1))
        await workflow.sleep(3_600)

    @workflow.signal
    def wake(self) -> None:
        self._woken = True

    @workflow.query
    def asked(self) -> bool:
        return True


def _worker(client: Client) -> Worker:
    return Worker(client, task_queue=QUEUE, workflows=[Waiter], workflow_runner=TaskwiseRunner())


async def _count(handle: WorkflowHandle[Waiter, None], kind: EventType.ValueType) -> int:
    return sum(event.event_type == kind for event in (await handle.fetch_history()).events)


def _is_refused(asked: asyncio.Task[bool]) -> bool:
    return asked.done() and str(asked.exception()) == REFUSED


async def _is_put_aside(client: Client) -> bool:
    """Whether the server has put the workflow task aside. For a moment it first holds it out to
    whoever comes; behind that, queries are before it.
    """
    described = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=QUEUE),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
            report_stats=True,
        )
    )
    return described.stats.approximate_backlog_count > 0


async def test_what_is_asked_between_two_tasks_runs_no_code() -> None:
    """It is answered with that; the code goes on at the time of the next task, as in a replay."""
    async with temporal_server(*ONE_LINE) as server:
        await _asked_between(server.client)


async def _asked_between(client: Client) -> None:
    async with _worker(client):
        handle = await client.start_workflow(
            Waiter.run, id="taskwise", task_queue=QUEUE, task_timeout=LIMIT
        )
        await eventually(
            lambda: _count(handle, EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED), "it waits"
        )
    asking = [
        asyncio.create_task(handle.query(Waiter.asked, rpc_timeout=WAITED)) for _ in range(QUERIES)
    ]
    # Nobody is there to answer. When the last of them has waited for as long as it may, all others
    # have come to the server, which keeps those of later for the task.
    with pytest.raises(RPCError):
        await handle.query(Waiter.asked, rpc_timeout=timedelta(seconds=1))
    await handle.signal(Waiter.wake)
    await eventually(lambda: _is_put_aside(client), "nobody has taken the task")
    async with _worker(client):
        await eventually(lambda: any(map(_is_refused, asking)), "a query is refused")
        await eventually(lambda: _count(handle, EventType.EVENT_TYPE_TIMER_STARTED), "it goes on")
    for one in asking:
        one.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    history = await handle.fetch_history()
    await handle.terminate()
    assert await _count(handle, EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED) == 0
    await Replayer(
        workflows=[Waiter],
        workflow_runner=UnsandboxedWorkflowRunner(),
        data_converter=client.data_converter,
    ).replay_workflow(history)
