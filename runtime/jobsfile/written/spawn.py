"""How many sub-jobs a job may start, and what each is lent."""

from __future__ import annotations

from pydantic import Field

from runtime.base.spec.models import Spawn
from runtime.jobsfile.written.base import Written
from runtime.jobsfile.written.bounds import MAX_COUNT
from runtime.jobsfile.written.models import WrittenModel

_SPAWN = Spawn()


class WrittenSpawn(Written):
    """How many sub-jobs a job may start, and what each is lent of its budget."""

    max: int = Field(
        default=_SPAWN.max, ge=1, le=1_000, description="Sub-jobs that the job may start in all."
    )
    depth: int = Field(
        default=_SPAWN.depth,
        ge=1,
        le=4,
        description="Generations below the job: with 1, its sub-jobs start none.",
    )
    turns: int = Field(
        default=_SPAWN.turns, ge=1, le=MAX_COUNT, description="Turns that a sub-job is lent."
    )
    tokens: int = Field(
        default=_SPAWN.tokens, ge=1, le=MAX_COUNT, description="Tokens that a sub-job is lent."
    )
    usd: float = Field(
        default=_SPAWN.usd, gt=0, le=MAX_COUNT, description="US dollars that a sub-job is lent."
    )
    model: WrittenModel | None = Field(
        default=None, description="The model of sub-jobs; the job's own if left out."
    )
