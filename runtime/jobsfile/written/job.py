"""A job, which may stand for many."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from runtime.jobsfile.written.base import Written
from runtime.jobsfile.written.bounds import MAX_JOBS
from runtime.jobsfile.written.names import NAME_PATTERN
from runtime.jobsfile.written.patterns import TEMPLATE_PATTERN
from runtime.jobsfile.written.settings import WrittenSettings
from runtime.jobsfile.written.values import Goal, Name


class WrittenMany(Written):
    """What makes a job stand for many: one for each item, combination and number."""

    for_each: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "A file of items, relative to the jobs file: .jsonl, or .csv with a header. The job"
            " stands for one for each, in whose values {field} is what the item has there."
        ),
    )
    matrix: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(
        default={},
        min_length=1,
        max_length=16,
        description=(
            "Lists of values by the fields' names: the job stands for one for each combination."
        ),
    )
    count: int = Field(
        default=1,
        ge=1,
        le=MAX_JOBS,
        description="So many jobs, or so many of each; {n} is the number, from 1.",
    )


class WrittenJob(WrittenSettings, WrittenMany):
    """One job; it may override every default."""

    id: Annotated[
        Name, WithJsonSchema({"type": "string", "pattern": f"{NAME_PATTERN}|{TEMPLATE_PATTERN}"})
    ] = Field(
        description=(
            "The job's name, unique in the file. Of one that stands for many a text with a field in"
            " it; what a name cannot have becomes '-' in the field."
        )
    )
    goal: Goal = Field(description="What the job is to do, in words.", min_length=1)
