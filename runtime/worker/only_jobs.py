"""Interceptors of Holdfast in a worker that has workflows of others too, which they let alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import activity
from temporalio.worker import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

from runtime.base.workflow_ids import WORKFLOW_TYPES


class OnlyJobs(Interceptor):
    """Has the activities of jobs, and no others, go through ``interceptors``, the first of which is
    the outermost.
    """

    def __init__(self, interceptors: Sequence[Interceptor]) -> None:
        self._interceptors = tuple(interceptors)

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """See ``Interceptor``."""
        ours = next
        for interceptor in reversed(self._interceptors):
            ours = interceptor.intercept_activity(ours)
        return _Parted(next, ours)


class _Parted(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, ours: ActivityInboundInterceptor) -> None:
        super().__init__(next)
        self._ours = ours

    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        # The last of ours is followed by ``next``, which is initialised with them.
        self._ours.init(outbound)

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        whose = self._ours if activity.info().workflow_type in WORKFLOW_TYPES else self.next
        return await whose.execute_activity(input)
