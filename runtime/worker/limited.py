"""Workers on the task queues of accounts and tools that have a limit, and what keeps their rates.

The server keeps the rate for all workers together; each of them tells it what its calls used, and
how long a provider wants to be left alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    Worker,
)

from activities._failures import FailureKind, retry_after
from activities.rate_headers import listening
from runtime.base.errors import ServerError
from runtime.base.roles import Roles
from runtime.base.spec.limits import is_of, role_of
from runtime.server.rates import Account, CalledQueues, account_of, keep_rate
from runtime.worker.beside import stopped
from runtime.worker.steering import Meter, steered

LOOK_SECONDS = 2.0
"""How often a queue's rate is looked at."""

NOTICED = 0.02
"""A change of the rate below this part of it is not worth telling the server."""

MakeWorker = Callable[[str, int | None, Interceptor], Worker]
"""A worker of a queue, with so many calls at a time, whose calls go through an interceptor."""


class Metered(Interceptor):
    """Has a meter hear what calls use."""

    def __init__(self) -> None:
        self.meter = Meter()

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """See ``Interceptor``."""
        return _Metering(next, self)

    def taken(self) -> Meter:
        """What was heard since the last time."""
        # In one step, so that no call is heard by neither.
        meter, self.meter = self.meter, Meter()
        return meter


class _Metering(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, metered: Metered) -> None:
        super().__init__(next)
        self._metered = metered

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        metered = self._metered
        asked: timedelta | None = None

        def hear(headers: Mapping[str, str]) -> None:
            nonlocal asked
            metered.meter.hear(headers, time.time())
            asked = retry_after(headers, datetime.now(UTC))

        token = listening.set(hear)
        try:
            result = await self.next.execute_activity(input)
        except ApplicationError as error:
            if error.type == FailureKind.RATE_LIMIT:
                # Not the error's own delay, which may be ours: it grows with the call's failures.
                metered.meter.refuse(None if asked is None else asked.total_seconds())
            raise
        finally:
            listening.reset(token)
        # Calls of tools come through here too, and use no tokens.
        if (usage := getattr(result, "usage", None)) is not None:
            metered.meter.used(usage.total)
        return result


@dataclass
class LimitedQueues:
    """A worker for each limited queue that is wanted."""

    client: Client
    make: MakeWorker
    _serving: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    async def want(self, queues: Iterable[str]) -> None:
        """Work on these queues, and on no others.

        Raises:
            ServerError: if a worker has stopped.
        """
        for queue, task in self._serving.items():
            # Told, since calls that go by that queue would else wait without a word.
            if task.done():
                raise ServerError(f"the worker of {queue} stopped: {task.exception()}")
        wanted = dict.fromkeys(queues)
        for queue in [queue for queue in self._serving if queue not in wanted]:
            await stopped(self._serving.pop(queue))
        for queue in wanted:
            if queue not in self._serving:
                self._serving[queue] = asyncio.create_task(self._serve(queue), name=queue)

    async def follow(
        self, queues: Iterable[str], task_queue: str, archive: str, roles: Roles
    ) -> NoReturn:
        """Work on these queues until cancelled, and on those by which limited calls of the open
        jobs of an archive on a task queue go: a job keeps those with which it began.

        Raises:
            ServerError: as ``want``.
        """
        wanted = set(queues)
        called = CalledQueues(self.client, task_queue)
        while True:
            with suppress(RPCError):
                wanted.update(queue for queue in await called.look() if is_of(queue, archive))
            await self.want(sorted(queue for queue in wanted if role_of(queue) in roles))
            await asyncio.sleep(LOOK_SECONDS)

    async def close(self) -> None:
        """Let the calls in flight end, and stop."""
        serving = list(self._serving.values())
        self._serving.clear()
        # Each: one that has failed leaves none of the others at work.
        await asyncio.gather(*map(stopped, serving), return_exceptions=True)

    async def _serve(self, queue: str) -> None:
        """Work on a queue, with a new worker whenever the number of calls at a time changes."""
        metered = Metered()
        account = await self._look(queue, metered, Account())
        while True:
            concurrent = account.limit.concurrent
            worker = self.make(queue, concurrent, metered)
            running = asyncio.create_task(worker.run())
            try:
                while account.limit.concurrent == concurrent:
                    await asyncio.wait({running}, timeout=LOOK_SECONDS)
                    if running.done():
                        running.result()
                        return
                    account = await self._look(queue, metered, account)
            finally:
                await worker.shutdown()
                await asyncio.gather(running, return_exceptions=True)

    async def _look(self, queue: str, metered: Metered, known: Account) -> Account:
        """The queue's state now, after what this worker has heard; what was known while the server
        does not answer.
        """
        heard = metered.taken()
        try:
            # Read anew each time: other workers steer the same queue.
            account, rate = await account_of(self.client, queue)
            now = time.time()
            after = steered(account, heard, now)
            if _differs(after.rate(now), rate) or after.until != account.until:
                await keep_rate(self.client, queue, after, now)
            return after
        except RPCError:
            # For the next look: nobody else has heard that the provider is to be left alone.
            metered.meter.add(heard)
            return known


def _differs(wanted: float | None, kept: float | None) -> bool:
    if wanted is None or kept is None:
        return wanted is not kept
    # A queue may be kept at nothing, of which there is no part.
    return abs(wanted - kept) > NOTICED * max(kept, 1e-9)
