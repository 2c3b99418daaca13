"""Why a job ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

BAD_REPLIES = 3
"""Turns in a row without a usable reply, or with a text and no statement, after which a job has
failed.
"""


class JobStatus(StrEnum):
    """Where a job stands. ``BUDGET``: a budget stopped it."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    BUDGET = "budget"
    CANCELLED = "cancelled"


class Cause(StrEnum):
    """What made a job fail: by what it may be tried again."""

    PROVIDER = "provider"
    """The model could not be asked."""
    TOOL = "tool"
    """What a job's hands do: its workspace, tools, commands."""
    ERROR = "error"
    """Anything else, such as replies without a statement."""


@dataclass(frozen=True)
class Stop:
    """The end of a job: its status, the reason in words, the result that ``finish`` was given, and
    what made it fail, if it has failed. ``patch``: what it changed is handed over with the result.
    """

    status: JobStatus
    reason: str
    result: Any = None
    cause: Cause | None = None
    patch: bool = False


WITHDRAWN = Stop(JobStatus.CANCELLED, "cancelled before it began")
"""The end of a job that was cancelled while it waited for its place in a batch."""


class BudgetSpent(Exception):
    """A budget was spent in mid-turn; the message is the reason."""


class JobFailed(Exception):
    """The job cannot go on; the message is the reason."""

    def __init__(self, reason: str, cause: Cause = Cause.ERROR) -> None:
        super().__init__(reason)
        self.cause = cause
