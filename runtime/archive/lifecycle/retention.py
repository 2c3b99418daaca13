"""Which jobs rules of retention let go."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from runtime.archive.forms import End
from runtime.archive.gaps import UNREADABLE
from runtime.archive.job import JobArchive
from runtime.archive.reading import read_ahead
from runtime.archive.standings import standing_of
from runtime.archive.stores import ObjectStore
from runtime.base.errors import InputError
from runtime.base.values import JobKey


@dataclass(frozen=True)
class EndedJob:
    """A job whose newest run has ended: how and when (UTC)."""

    job: JobKey
    status: str
    ended_at: datetime


@dataclass(frozen=True)
class Rules:
    """What may go: of jobs that have ended those for which all that is given holds.

    ``older_than``: they ended so long ago. ``statuses``: they ended so. ``keep``: of each batch the
    so many that ended last stay, whatever else holds.
    """

    older_than: timedelta | None = None
    statuses: frozenset[str] = frozenset()
    keep: int | None = None

    def __post_init__(self) -> None:
        if self.older_than is None and not self.statuses and self.keep is None:
            raise InputError("give a rule: --older-than, --status or --keep")

    def let_go(self, ended: Iterable[EndedJob], now: datetime) -> list[EndedJob]:
        """The jobs that the rules let go, in the order of their names."""
        # By name first: of jobs that ended at one moment the same ones stay each time.
        by_name = sorted(ended, key=lambda one: one.job)
        newest = sorted(by_name, key=lambda one: one.ended_at, reverse=True)
        kept: set[JobKey] = set()
        for batch in {one.job.batch for one in by_name}:
            of_batch = [one.job for one in newest if one.job.batch == batch]
            kept.update(of_batch[: self.keep or 0])
        return [
            one
            for one in by_name
            if one.job not in kept
            and (self.older_than is None or now - one.ended_at >= self.older_than)
            and (not self.statuses or one.status in self.statuses)
        ]


def ended_jobs(store: ObjectStore, jobs: Collection[JobKey]) -> list[EndedJob]:
    """Those of the jobs that have ended, as the archive has it; a damaged one at the latest of its
    ends, and not where one of these cannot be read.
    """

    def look(job: JobKey) -> EndedJob | None:
        archive = JobArchive.of(store, job)
        with suppress(*UNREADABLE):
            standing = standing_of(archive)
            if standing.end is not None and standing.end.ended_at:
                # Which run of a damaged job is the newest may be what cannot be read.
                ends = _all_ends(archive) if standing.damaged else []
                return EndedJob(job, standing.status, _latest([standing.end, *ends]))
        return None

    return [one for one in read_ahead(jobs, look) if one is not None]


def _all_ends(archive: JobArchive) -> list[End]:
    return [end for run in archive.ended_runs() if (end := archive.end(run)) is not None]


def _latest(ends: Iterable[End]) -> datetime:
    times = (datetime.fromisoformat(end.ended_at) for end in ends if end.ended_at)
    return max(time.astimezone(UTC) for time in times)
