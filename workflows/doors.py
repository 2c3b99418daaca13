"""What workflows take from outside, and what they do with the rest: no input fails a workflow task.

That a payload was given by somebody who has the key is checked before
(``runtime.server.authentic``), and the SDK drops a signal whose payloads it cannot read, refuses
such a query or update, and fails a workflow whose order is refused. What is left is how many
arguments there are, and null and bytes in place of values: the SDK would call the handler, and fail
the task for ever.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Self, get_type_hints

from temporalio import workflow
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    HandleSignalInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

with workflow.unsafe.imports_passed_through():
    from runtime.base.workflow_ids import WORKFLOW_TYPES
    from workflows import patches


class Door(Interceptor):
    """Has workflows drop signals that do not have the arguments that their handlers take."""

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        """See ``Interceptor``."""
        return _Doorkeeper


class _Doorkeeper(WorkflowInboundInterceptor):
    async def handle_signal(self, input: HandleSignalInput) -> None:
        handler = (
            workflow.get_signal_handler(input.signal)
            if workflow.info().workflow_type in WORKFLOW_TYPES
            else None
        )
        if handler is not None and (misfit := _misfit(handler, input.args)) is not None:
            # The logger is silent while a history is replayed.
            workflow.logger.warning(
                f"dropped the signal {input.signal!r} of {workflow.info().workflow_id}: {misfit}"
            )
            return
        await self.next.handle_signal(input)


def _misfit(function: Callable[..., Any], values: Sequence[Any]) -> str | None:
    """What is wrong with the values as arguments of ``function``, whose annotations are classes;
    None if nothing is.
    """
    try:
        arguments = inspect.signature(function).bind(*values).arguments
    except TypeError as error:
        return str(error)
    # The SDK binds a handler to its workflow by a partial.
    wanted = get_type_hints(getattr(function, "func", function))
    for name, value in arguments.items():
        if name in wanted and not isinstance(value, wanted[name]):
            return f"{name} is no {wanted[name].__name__}"
    return None


class Ordered:
    """A workflow that begins with one order.

    Any other beginning ends it, by name; a workflow task would be tried for ever.
    """

    def __new__(cls, *orders: Any) -> Self:
        """The workflow, if it is given the one order that its ``__init__`` takes, and that somebody
        can carry out.

        Raises:
            ApplicationError: type ``NoOrder``, which fails the workflow.
        """
        misfit = _misfit(cls.__init__, (None, *orders)) or orders[0].misfit
        if misfit is not None:
            raise ApplicationError(
                f"a workflow of Holdfast begins with one order, and not so: {misfit}",
                type="NoOrder",
                non_retryable=True,
            )
        patches.begin()
        return super().__new__(cls)
