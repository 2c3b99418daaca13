"""Model calls that a cancel or a deadline cut short: what was sent is paid for, and so booked."""

from __future__ import annotations

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, CancelledError, TimeoutError

with workflow.unsafe.imports_passed_through():
    from activities.contracts import CutCall
    from runtime.base.values import Failed
from workflows.calling import result_of
from workflows.limits import RECORD_TRIES

CUT_BOOKED = "cut-calls-are-booked"
"""The patch since which a job asks what calls have used that were cut, and books it."""


def was_cut(error: ActivityError) -> bool:
    """Whether a call ended without a word of what it used."""
    return isinstance(error.cause, CancelledError | TimeoutError)


async def spent_on(cut: CutCall, told: Failed) -> Failed:
    """What a call used that was cut; what its error ``told``, if the archive cannot say.

    Shielded: the job's own cancel may be why it was cut.
    """
    asked = result_of(
        "settle_call",
        cut,
        Failed,
        id=f"settle-{cut.activity}",
        summary=f"what was spent on {cut.activity}",
        tries=RECORD_TRIES,
    )
    try:
        return await asyncio.shield(asked)
    except ActivityError:
        return told
