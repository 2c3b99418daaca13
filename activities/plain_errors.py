"""Holdfast's own errors, and those of the system, without their chain of causes.

The server keeps 4 kB of a pending activity's error and else says only "Failure exceeds size
limit.", and a store's error has a library's stack traces behind it: then nobody would see that it
is the archive that cannot be written, or that the disk is full.
"""

from __future__ import annotations

from typing import Any

from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from runtime.base.errors import HoldfastError

MOST_CHARACTERS = 1_000
"""Of a message, which says what happened, to what and what to do."""


class PlainErrors(Interceptor):
    """Has activities raise ``HoldfastError`` and ``OSError`` as an ``ApplicationError`` of the
    same name and message, and nothing else of it.
    """

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """See ``Interceptor``."""
        return _Plain(next)


class _Plain(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        try:
            return await self.next.execute_activity(input)
        except (HoldfastError, OSError) as error:
            raise ApplicationError(
                str(error)[:MOST_CHARACTERS], type=type(error).__name__
            ) from None
