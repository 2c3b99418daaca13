"""Which jobs rules of retention let go."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

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
    """Those of the jobs that have ended, as the archive has it."""

    def look(job: JobKey) -> EndedJob | None:
        standing = standing_of(JobArchive.of(store, job))
        if standing.end is None or not standing.end.ended_at:
            return None
        at = datetime.fromisoformat(standing.end.ended_at)
        return EndedJob(job, standing.status, at.astimezone(UTC))

    return [one for one in read_ahead(jobs, look) if one is not None]
