"""What the activities of batches take and return.

Pages hold more jobs than one payload may: a batch knows their digests, and asks for the jobs of one
at a time.
"""

from __future__ import annotations

from typing import Any

from activities.contracts import Contract
from runtime.base.values import JobKey


class PageRef(Contract):
    """A page of jobs in the archive, by its digest, and how many jobs it has."""

    digest: str
    jobs: int


class PageOrder(Contract):
    """Asks for the jobs of a page that no run has carried out; of the one called ``job`` alone, if
    one is named, in whichever of the pages it is.
    """

    batch: str
    pages: tuple[PageRef, ...]
    job: str | None = None


class PageJobs(Contract):
    """Orders of jobs, as JSON has them; the jobs whose orders were carried out are ``begun``."""

    orders: tuple[dict[str, Any], ...] = ()
    begun: tuple[str, ...] = ()


class Followed(Contract):
    """A job that an earlier run of the batch has started: its name and the first run of its
    chain.
    """

    job: str
    run: str


class FollowOrder(Contract):
    """Asks which of the jobs have ended, as soon as one has."""

    batch: str
    jobs: tuple[Followed, ...]


class FollowedEnd(Contract):
    """How a job ended: its outcome as JSON has it, or that it was cancelled or has failed as a
    workflow.
    """

    job: str
    outcome: dict[str, Any] | None = None
    cancelled: bool = False


class FollowedEnds(Contract):
    """Jobs that have ended."""

    ends: tuple[FollowedEnd, ...]


class AgainOrder(Contract):
    """Asks for the definition of a job that is to run again."""

    key: JobKey


class Definition(Contract):
    """What a job was last defined as; None if the archive does not have it."""

    spec: dict[str, Any] | None = None
