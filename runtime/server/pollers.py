"""Whether anybody takes the calls of a task queue."""

from __future__ import annotations

import time
from collections.abc import Callable

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

POLLED_SECONDS = 75.0
"""A worker asks again after a minute at the latest; the server remembers those that are gone for
five.
"""


async def is_polled(client: Client, queue: str, clock: Callable[[], float] = time.time) -> bool:
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
    now = clock()
    asked = (poller.last_access_time.ToNanoseconds() / 1e9 for poller in described.pollers)
    return any(now - at < POLLED_SECONDS for at in asked)
