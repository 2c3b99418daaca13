"""What time the Temporal server has."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    PollActivityTaskQueueRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError

Clock = Callable[[], float]
"""Seconds since 1970 by this machine."""

POLL_SECONDS = 20
# A tenth of a second apart: ten seconds in all, and the poll lasts longer.
_LOOKS = 100


class ServerTime(NamedTuple):
    """What the server said of its time, between two looks at this machine's clock; None if it did
    not say.
    """

    before: float
    told: float | None
    after: float


async def server_time(client: Client, clock: Clock = time.time) -> ServerTime:
    """Ask when the server was last asked for work on a queue of our own.

    That needs only what every worker may do, and leaves nothing behind.

    Raises:
        RPCError: if work may not be asked for, or the server does not answer.
    """
    service, queue = client.workflow_service, f"holdfast-clock-{secrets.token_hex(8)}"
    before = clock()
    # A queue of a name that nobody else has: no task of anybody's is taken.
    poll = asyncio.create_task(
        service.poll_activity_task_queue(
            PollActivityTaskQueueRequest(
                namespace=client.namespace, task_queue=TaskQueue(name=queue), identity=queue
            ),
            timeout=timedelta(seconds=POLL_SECONDS),
        )
    )
    try:
        for _ in range(_LOOKS):
            if poll.done():
                poll.result()
            seen = await service.describe_task_queue(
                DescribeTaskQueueRequest(
                    namespace=client.namespace,
                    task_queue=TaskQueue(name=queue),
                    task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
                ),
                retry=True,
            )
            if seen.pollers:
                told = seen.pollers[0].last_access_time.ToNanoseconds() / 1e9
                return ServerTime(before, told, clock())
            await asyncio.sleep(0.1)
        return ServerTime(before, None, clock())
    finally:
        poll.cancel()
        with suppress(asyncio.CancelledError, RPCError):
            await poll
