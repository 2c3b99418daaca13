"""Parts of a job to which its own keys and the defaults' add up, key by key."""

from __future__ import annotations

from typing import Any

from runtime.base.spec.models import Budget, Retry, Sections
from runtime.jobsfile.written.base import Written
from runtime.jobsfile.written.budgets import WrittenBudget
from runtime.jobsfile.written.retry import WrittenRetry
from runtime.jobsfile.written.sections import WrittenSections


def budget_of(defaults: WrittenBudget, own: WrittenBudget) -> Budget:
    """The job's own limits, then the defaults' ones."""
    return Budget(**spending_in(defaults, own))


def retry_of(defaults: WrittenRetry, own: WrittenRetry) -> Retry:
    """The job's own bounds, then the defaults' ones."""
    return Retry(**_values_in(defaults, own))


def sections_of(defaults: WrittenSections, own: WrittenSections) -> Sections:
    """The job's own bounds, then the defaults' ones."""
    return Sections(**_values_in(defaults, own))


def spending_in(*parts: Written) -> dict[str, Any]:
    """What budgets say may be spent, as a resolved one names it; a later one's keys count."""
    values = _values_in(*parts)
    if "wall" in values:
        values["wall_seconds"] = values.pop("wall")
    return values


def _values_in(*parts: Written) -> dict[str, Any]:
    """The keys of all parts; a later one's count."""
    # Only what is written counts: a default of the job's own part would hide what the file's
    # defaults say, or what the job had.
    return {
        key: value for part in parts for key, value in part.model_dump(exclude_unset=True).items()
    }
