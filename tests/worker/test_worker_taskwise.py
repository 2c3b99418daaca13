"""A query that has waited for a worker, of a workflow to which something has happened meanwhile."""

import asyncio
from datetime import timedelta

import pytest
from temporalio import workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, Worker

from runtime.worker.taskwise import REFUSED, TaskwiseRunner
from tests.eventually import eventually

pytestmark = pytest.mark.server

QUERIES = 8
"""Beside one task: a worker that comes begins with one of them."""

LIMIT = timedelta(seconds=2)
WAITED = timedelta(seconds=10)


@workflow.defn
class Sleeper:
    """Goes on by how long it has slept."""

    @workflow.run
    async def run(self) -> None:
        began = workflow.time()
        await workflow.sleep(1)
        if workflow.time() - began < 1:
            workflow.start_activity("hurry", schedule_to_close_timeout=timedelta(hours=1))
        await workflow.sleep(3_600)

    @workflow.query
    def asked(self) -> bool:
        return True


def _worker(client: Client) -> Worker:
    return Worker(
        client, task_queue="taskwise", workflows=[Sleeper], workflow_runner=TaskwiseRunner()
    )


async def _count(handle: WorkflowHandle[Sleeper, None], kind: EventType.ValueType) -> int:
    return sum(event.event_type == kind for event in (await handle.fetch_history()).events)


async def test_what_is_asked_between_two_tasks_runs_no_code(temporal: WorkflowEnvironment) -> None:
    """It is answered with that; the code goes on at the time of the next task, as in a replay."""
    client, timers = temporal.client, EventType.EVENT_TYPE_TIMER_STARTED
    async with _worker(client):
        handle = await client.start_workflow(
            Sleeper.run, id="taskwise", task_queue="taskwise", task_timeout=LIMIT
        )

        async def slept(times: int) -> bool:
            return await _count(handle, timers) == times

        await eventually(lambda: slept(1), "the first sleep")
    asking = [
        asyncio.create_task(handle.query(Sleeper.asked, rpc_timeout=WAITED)) for _ in range(QUERIES)
    ]
    await eventually(
        lambda: _count(handle, EventType.EVENT_TYPE_TIMER_FIRED), "the end of the first sleep"
    )
    async with _worker(client):
        answers = await asyncio.gather(*asking, return_exceptions=True)
        await eventually(lambda: slept(2), "the second sleep")
    history = await handle.fetch_history()
    await handle.terminate()
    assert REFUSED in map(str, answers)
    assert await _count(handle, EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED) == 0
    await Replayer(
        workflows=[Sleeper],
        workflow_runner=UnsandboxedWorkflowRunner(),
        data_converter=client.data_converter,
    ).replay_workflow(history)
