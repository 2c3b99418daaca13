"""A workflow of a kind that this build does not have: a stranger's ends at once, by name; the SDK
would fail its task for ever. One that is signed is of another build, and waits for a worker of
that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from temporalio import workflow
from temporalio.common import RawValue, VersioningBehavior
from temporalio.exceptions import ApplicationError


@workflow.defn(dynamic=True, sandboxed=False)
class UnknownWorkflow:
    """Begins nothing."""

    @workflow.run
    async def run(self, arguments: Sequence[RawValue]) -> NoReturn:
        """Raises:
        ApplicationError: type ``NotSigned`` or ``NoOrder``, which fails the workflow.
        RuntimeError: if the arguments are signed, which fails the task, to be tried again.
        """
        kind = workflow.info().workflow_type
        for argument in arguments:
            # Raises for one that is not signed.
            workflow.payload_converter().from_payload(argument.payload, Any)
        if not arguments:
            raise ApplicationError(
                f"a workflow of Holdfast begins with one order, and {kind} with none",
                type="NoOrder",
                non_retryable=True,
            )
        raise RuntimeError(
            f"this build has no workflow {kind}: a worker of another one may have it"
        )


@workflow.defn(dynamic=True, sandboxed=False, versioning_behavior=VersioningBehavior.AUTO_UPGRADE)
class VersionedUnknown(UnknownWorkflow):
    """``UnknownWorkflow``, on whichever version there is."""

    @workflow.run
    async def run(self, arguments: Sequence[RawValue]) -> NoReturn:
        """As ``UnknownWorkflow.run``."""
        await super().run(arguments)
