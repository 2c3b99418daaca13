"""What commands end with; see ``main``."""

from __future__ import annotations

from collections.abc import Iterable

from runtime.job.stops import JobStatus

SOME_FAILED, BUDGET, DIFFERENCE, INTERRUPTED = 1, 3, 4, 130


def exit_code(statuses: Iterable[str]) -> int:
    """Of jobs: 0 if all succeeded, 3 if a budget stopped some and nothing worse came, else 1."""
    ends = {*statuses}
    if ends <= {JobStatus.SUCCEEDED}:
        return 0
    return BUDGET if ends <= {JobStatus.SUCCEEDED, JobStatus.BUDGET} else SOME_FAILED


def worst(codes: Iterable[int]) -> int:
    """Of the codes of several runs the one that counts: a difference before a failure, and that
    before a budget, as with jobs.
    """
    told = {*codes}
    return next((code for code in (DIFFERENCE, SOME_FAILED, BUDGET) if code in told), 0)
