"""Errors of activities without their chain of causes, and without secrets.

The server keeps 4 kB of a pending activity's error and else says only "Failure exceeds size
limit.", and a store's error has a library's stack traces behind it: then nobody would see that it
is the archive that cannot be written, or that the disk is full.

What a set-up printed, or a tool's module raised as it was imported, is told by such errors to all
who see that a job waits, or how it ended.
"""

from __future__ import annotations

from typing import Any

from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from runtime.base.errors import HoldfastError
from runtime.base.redaction.redactor import Redactor, redactor_of
from runtime.base.redaction.rules import Redaction

MOST_CHARACTERS = 1_000
"""Of a message, which says what happened, to what and what to do."""


class PlainErrors(Interceptor):
    """Has activities raise ``HoldfastError`` and ``OSError`` as an ``ApplicationError`` of the
    same name and message, and nothing else of it; and an ``ApplicationError`` as one that says the
    same. What the activity's argument would have masked (``redact``) is masked in either.
    """

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """See ``Interceptor``."""
        return _Plain(next)


class _Plain(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        try:
            return await self.next.execute_activity(input)
        except ApplicationError as error:
            raise _without_secrets(error, _redactor(input)) from None
        except (HoldfastError, OSError) as error:
            # Before it is cut: half a secret is found by no search.
            told = _redactor(input).text(str(error))
            raise ApplicationError(told[:MOST_CHARACTERS], type=type(error).__name__) from None


def _redactor(input: ExecuteActivityInput) -> Redactor:
    rules = getattr(input.args[0], "redact", None) if input.args else None
    return redactor_of(rules if isinstance(rules, Redaction) else Redaction())


def _without_secrets(error: ApplicationError, redactor: Redactor) -> ApplicationError:
    return ApplicationError(
        redactor.text(error.message),
        *error.details,
        type=error.type,
        non_retryable=error.non_retryable,
        next_retry_delay=error.next_retry_delay,
        category=error.category,
    )
