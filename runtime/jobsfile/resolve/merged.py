"""Parts of a job to which its own keys and the defaults' add up, key by key."""

from __future__ import annotations

from runtime.base.spec.models import Budget, Retry, Sections
from runtime.jobsfile.written.budgets import WrittenBudget
from runtime.jobsfile.written.retry import WrittenRetry
from runtime.jobsfile.written.sections import WrittenSections


def budget_of(defaults: WrittenBudget, own: WrittenBudget) -> Budget:
    """The job's own limits, then the defaults' ones."""
    # Only what is written counts: a default of the job's own part would hide what the file's
    # defaults say.
    values = {**defaults.model_dump(exclude_unset=True), **own.model_dump(exclude_unset=True)}
    if "wall" in values:
        values["wall_seconds"] = values.pop("wall")
    return Budget(**values)


def retry_of(defaults: WrittenRetry, own: WrittenRetry) -> Retry:
    """The job's own bounds, then the defaults' ones."""
    return Retry(
        **{**defaults.model_dump(exclude_unset=True), **own.model_dump(exclude_unset=True)}
    )


def sections_of(defaults: WrittenSections, own: WrittenSections) -> Sections:
    """The job's own bounds, then the defaults' ones."""
    return Sections(
        **{**defaults.model_dump(exclude_unset=True), **own.model_dump(exclude_unset=True)}
    )
