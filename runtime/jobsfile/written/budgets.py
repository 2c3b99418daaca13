"""What a job, and what all jobs of a batch together, may spend."""

from __future__ import annotations

from pydantic import Field

from runtime.base.spec.models import Budget
from runtime.jobsfile.written.base import Written
from runtime.jobsfile.written.bounds import MAX_COUNT
from runtime.jobsfile.written.values import Deadline, Duration

_DEFAULTS = Budget()


class WrittenBudget(Written):
    """What a job may spend. Keys that a job leaves out come from the defaults."""

    turns: int = Field(default=_DEFAULTS.turns, ge=1, le=MAX_COUNT, description="Model calls.")
    tokens: int = Field(
        default=_DEFAULTS.tokens,
        ge=1,
        le=MAX_COUNT,
        description="Prompt and completion tokens of all calls together.",
    )
    usd: float = Field(
        default=_DEFAULTS.usd,
        gt=0,
        le=MAX_COUNT,
        description="US dollars, as litellm prices the calls.",
    )
    wall: Duration = Field(
        default=_DEFAULTS.wall_seconds,
        description=(
            "Time that is worked for the job, its own waits included: seconds, or a text such as"
            " 30s, 90m, 6h, 2d."
        ),
    )
    deadline: Deadline | None = Field(
        default=None,
        description=(
            "When the job ends by the clock: a duration after its start, or a time such as"
            " 2026-05-31T08:00:00+02:00."
        ),
    )


class WrittenBatchBudget(Written):
    """What all jobs of a batch may spend together; what is left out is not bounded."""

    turns: int | None = Field(default=None, ge=1, le=MAX_COUNT, description="Model calls.")
    tokens: int | None = Field(
        default=None, ge=1, le=MAX_COUNT, description="Prompt and completion tokens of all calls."
    )
    usd: float | None = Field(default=None, gt=0, le=MAX_COUNT, description="US dollars.")
    wall: Duration | None = Field(
        default=None, description="Time by the clock from the batch's start on."
    )
