"""Whether anybody takes the calls of a task queue."""

from __future__ import annotations

import time
from contextlib import suppress

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

from runtime.server.server_clock import Clock, server_time

POLLED_SECONDS = 75.0
"""A worker asks again after a minute at the latest; the server remembers those that are gone for
five.
"""


async def is_polled(client: Client, queue: str, clock: Clock = time.time) -> bool:
    """Whether a worker has asked for activities of the queue of late.

    Raises:
        RPCError: if the server does not answer.
    """
    described = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
        ),
        retry=True,
    )
    asked = [poller.last_access_time.ToNanoseconds() / 1e9 for poller in described.pollers]
    if not asked:
        return False
    if clock() - max(asked) < POLLED_SECONDS:
        return True
    # By a clock that is ahead of the server's, nobody has asked of late.
    now = None
    with suppress(RPCError):
        now = (await server_time(client, clock)).told
    return now is not None and now - max(asked) < POLLED_SECONDS
