"""How long activities work, told with what they give back: a job's wall budget counts work, not the
time that passes.

Time in a queue, and time in which no worker is there, is in no attempt and so counted nowhere.
"""

from __future__ import annotations

import time
from typing import Any

from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from activities.contracts import Worked


class WorkingTime(Interceptor):
    """Sets ``worked`` of each ``Worked`` that an activity gives back."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """See ``Interceptor``."""
        return _Timed(next)


class _Timed(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        began = time.monotonic()
        result = await self.next.execute_activity(input)
        if isinstance(result, Worked):
            return result.model_copy(update={"worked": round(time.monotonic() - began, 3)})
        return result
