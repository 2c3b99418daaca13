"""Heartbeats of activities that have nothing to tell but that they live.

Without them a read or a write that was in flight when its worker was killed would be given to
another only when its time limit is over, which is minutes; so a heartbeat timeout holds for every
activity. ``call_model`` beats by itself, since its heartbeats say how much has arrived.
"""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import activity
from temporalio.worker import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

HEARTBEAT_SECONDS = 1.0
"""How often an activity tells Temporal that it lives."""

SPEAKS_FOR_ITSELF = frozenset({"call_model"})


class HeartbeatInterceptor(Interceptor):
    """Beats for each activity that has a heartbeat timeout, after a second and then once a
    second.
    """

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """The activity with heartbeats beside it."""
        return _Beating(next)


class _Beating(ActivityInboundInterceptor):
    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        # The inner interceptor replaces activity.heartbeat by one for threads, which must not be
        # called from the loop.
        self._outbound = outbound
        super().init(outbound)

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        if info.heartbeat_timeout is None or info.activity_type in SPEAKS_FOR_ITSELF:
            return await self.next.execute_activity(input)
        beating = asyncio.create_task(self._beat())
        try:
            return await self.next.execute_activity(input)
        finally:
            beating.cancel()

    async def _beat(self) -> None:
        # Most activities end before the first is due: each is a call of the server's.
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            self._outbound.heartbeat()
