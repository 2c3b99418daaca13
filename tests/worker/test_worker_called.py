"""By which limited queues the workflows on a task queue go: what a worker asks the server for."""

from __future__ import annotations

import uuid

import pytest
from temporalio.client import Client

from runtime.base.spec.limits import QUEUES
from runtime.base.workflow_ids import BATCH_WORKFLOW, JOB_WORKFLOW, open_on
from runtime.server.rates import OLDER_LOOKS, CalledQueues
from tests.eventually import eventually
from tests.servers.temporal_server import temporal_server

pytestmark = pytest.mark.server

JOBS = 30


async def begin(client: Client, queue: str, kind: str, *called: str) -> str:
    """A workflow that stays open: nobody works on the queue."""
    name = uuid.uuid4().hex
    memo = {QUEUES: called} if called else {}
    await client.start_workflow(kind, id=name, task_queue=queue, memo=memo)
    return name


async def test_a_look_goes_through_what_is_new() -> None:
    """However many jobs a batch has open: through its own workflow and those that began lately;
    once in so many looks through all.
    """
    async with temporal_server() as environment:
        client = environment.client
        queue = uuid.uuid4().hex

        async def are_listed(count: int) -> bool:
            return (await client.count_workflows(open_on(queue))).count == count

        async def asked() -> int:
            return (await client.count_workflows(called.question())).count

        called = CalledQueues(client, queue)
        assert await called.look() == set()
        batch = await begin(client, queue, BATCH_WORKFLOW, "model:a@x")
        await begin(client, queue, JOB_WORKFLOW, "model:old@x")
        for _ in range(JOBS):
            await begin(client, queue, JOB_WORKFLOW)
        await eventually(lambda: are_listed(JOBS + 2), "all are listed")

        # Nothing was open at the first look.
        assert await called.look() == {"model:a@x", "model:old@x"}
        assert await asked() == 1
        assert await called.look() == {"model:a@x"}
        await begin(client, queue, JOB_WORKFLOW, "tool:new:f@x")
        await eventually(lambda: are_listed(JOBS + 3), "the new one is listed")
        assert await asked() == 2
        assert await called.look() == {"model:a@x", "tool:new:f@x"}

        await client.get_workflow_handle(batch).terminate()
        await eventually(lambda: are_listed(JOBS + 2), "the batch has ended")
        looks = [(await asked(), await called.look()) for _ in range(2 * OLDER_LOOKS)]
        whole = [look for look in looks if look[0] > 1]
        assert whole == [(JOBS + 2, {"model:old@x", "tool:new:f@x"})] * 2
        assert looks[-1] == (0, set())
