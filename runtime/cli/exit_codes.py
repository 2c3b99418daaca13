"""What a command that follows jobs ends with, by how they ended."""

from __future__ import annotations

from collections.abc import Iterable

from runtime.job.stops import JobStatus

SOME_FAILED, BUDGET = 1, 3


def exit_code(statuses: Iterable[str]) -> int:
    """0 if all succeeded, 3 if a budget stopped some and nothing worse happened, else 1."""
    found = {*statuses}
    if found <= {JobStatus.SUCCEEDED}:
        return 0
    return BUDGET if found <= {JobStatus.SUCCEEDED, JobStatus.BUDGET} else SOME_FAILED
