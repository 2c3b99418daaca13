"""How fast accounts and tools may be called, by all batches and workers together."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from runtime.jobsfile.written.base import Written
from runtime.jobsfile.written.bounds import LEAST_RATE, MAX_COUNT, MAX_LIMITS
from runtime.jobsfile.written.patterns import TARGET_PATTERN
from runtime.jobsfile.written.wrong import wrong


class WrittenLimit(Written):
    """How fast an account or a tool may be called, by all batches and workers together."""

    requests_per_minute: float | None = Field(
        default=None, ge=LEAST_RATE, le=MAX_COUNT, description="Calls a minute."
    )
    tokens_per_minute: int | None = Field(
        default=None,
        ge=1,
        le=MAX_COUNT,
        description=(
            "Prompt and completion tokens a minute; calls a minute follow from what calls use."
        ),
    )
    concurrent: int | None = Field(
        default=None, ge=1, le=256, description="Calls at a time, of each worker process."
    )

    @model_validator(mode="after")
    def _some(self) -> WrittenLimit:
        if not self.model_fields_set:
            raise wrong("expected requests_per_minute, tokens_per_minute or concurrent")
        return self


class WrittenToolLimit(Written):
    """How fast a tool may be called, by all batches and workers together."""

    requests_per_minute: float | None = Field(
        default=None, ge=LEAST_RATE, le=MAX_COUNT, description="Calls a minute."
    )
    concurrent: int | None = Field(
        default=None, ge=1, le=256, description="Calls at a time, of each worker process."
    )

    @model_validator(mode="after")
    def _some(self) -> WrittenToolLimit:
        if not self.model_fields_set:
            raise wrong("expected requests_per_minute or concurrent")
        return self


class WrittenLimits(Written):
    """How fast models and tools may be called. What is not named is not limited."""

    models: dict[Annotated[str, Field(min_length=1, max_length=200)], WrittenLimit] = Field(
        default={},
        max_length=MAX_LIMITS,
        description=(
            "By patterns of models' names (openai/*), each of which stands for a provider's"
            " account; the longest that matches counts."
        ),
    )
    tools: dict[Annotated[str, Field(pattern=TARGET_PATTERN)], WrittenToolLimit] = Field(
        default={}, max_length=MAX_LIMITS, description="By tools, as module:function."
    )
