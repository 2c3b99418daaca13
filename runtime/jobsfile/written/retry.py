"""How patient a model call is, and how often a job that has failed is started again."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from runtime.base.spec.models import Retry
from runtime.jobsfile.written.base import Written
from runtime.jobsfile.written.values import Duration

_RETRY = Retry()


class WrittenRetry(Written):
    """How long a model call is patient, and how often a job that has failed is started again. Keys
    that a job leaves out come from the defaults.
    """

    on: list[Literal["provider", "tool", "error"]] = Field(
        default=["provider", "tool", "error"],
        min_length=1,
        max_length=3,
        description=(
            "What must have failed for that: the model's provider, a tool or the workspace, or"
            " anything else (error). Any of them if left out."
        ),
    )
    times: int = Field(
        default=_RETRY.times,
        ge=0,
        le=100,
        description=(
            "How often a job that has failed is started again, from its first turn, as another run"
            " of the same job."
        ),
    )

    attempts: int = Field(
        default=_RETRY.attempts,
        ge=1,
        le=10_000,
        description=(
            "Failed attempts at one call, after which the job has failed. What they use is booked."
        ),
    )
    time: Duration = Field(
        default=_RETRY.time,
        description=(
            "What the failed attempts at one call, and the waits after them, may take in all."
        ),
    )
    first_byte: Duration = Field(
        default=_RETRY.first_byte,
        description="Time from a request to the first byte of a streamed reply.",
    )
    stall: Duration = Field(default=_RETRY.stall, description="Time between two pieces of a reply.")
