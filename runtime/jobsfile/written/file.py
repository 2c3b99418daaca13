"""A jobs file, with its jobs and without."""

from __future__ import annotations

from pydantic import Field

from runtime.base.spec.models import DEFAULT_CONCURRENCY
from runtime.jobsfile.written.base import Written
from runtime.jobsfile.written.bounds import MAX_JOBS
from runtime.jobsfile.written.budgets import WrittenBatchBudget
from runtime.jobsfile.written.finish import WrittenFinish
from runtime.jobsfile.written.job import WrittenJob
from runtime.jobsfile.written.limits import WrittenLimits
from runtime.jobsfile.written.settings import WrittenSettings
from runtime.jobsfile.written.values import Name


class WrittenHeader(Written):
    """A jobs file without its jobs."""

    batch: Name | None = Field(
        default=None, description="The batch's name; the file's stem if left out."
    )
    concurrency: int = Field(
        default=DEFAULT_CONCURRENCY,
        ge=1,
        le=1_000,
        description="How many jobs may be open at once.",
    )
    store: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "The archive: a directory (relative to the jobs file) or a URL such as"
            " s3://bucket/prefix."
        ),
    )
    budget: WrittenBatchBudget = Field(
        default=WrittenBatchBudget(),
        description="What the jobs may spend together, beside what each may ('defaults.budget').",
    )
    limits: WrittenLimits = Field(
        default=WrittenLimits(), description="How fast models and tools may be called."
    )
    priority: int | None = Field(
        default=None,
        ge=1,
        le=5,
        description=(
            "How early the batch's limited calls come among those of other batches: 1 the earliest,"
            " 3 if left out. Those of equal priority take turns."
        ),
    )
    on_finish: WrittenFinish | None = Field(
        default=None, description="Who is told when a job, and when the batch, has ended."
    )
    tools_path: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "The directory in which tools are looked for first; the jobs file's own if left out."
        ),
    )
    defaults: WrittenSettings = Field(
        default=WrittenSettings(), description="Settings of every job that does not override them."
    )


class WrittenFile(WrittenHeader):
    """A Holdfast jobs file."""

    jobs: list[WrittenJob] = Field(
        min_length=1, max_length=MAX_JOBS, description="The jobs of the batch."
    )
