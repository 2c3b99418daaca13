"""How jobs ended, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from runtime.archive.handed import handed_patch
from runtime.archive.job import JobArchive
from runtime.archive.reader import JobReader
from runtime.archive.stores import ObjectStore
from runtime.base.values import Usage
from runtime.job.stops import JobStatus
from workflows.messages import JobOutcome

__all__ = ["BatchResult", "JobResult", "JobStatus", "Usage"]


@dataclass(frozen=True)
class JobResult:
    """How one job ended.

    ``result`` is what its statement gave to ``finish``, None if it did not come to that.

    ``archive``, ``run`` and ``end`` say where its record is: the store's address, the run, and the
    key of the run's end.
    """

    batch: str
    id: str
    status: JobStatus
    reason: str
    result: Any
    turns: int
    usage: Usage
    cost_usd: float
    archive: str
    run: str
    end: str | None
    _store: ObjectStore | None = field(default=None, repr=False, compare=False)

    @property
    def succeeded(self) -> bool:
        """Whether it ended by ``finish``."""
        return self.status is JobStatus.SUCCEEDED

    def patch(self) -> bytes:
        """The patch that was handed over with the result; empty if none was."""
        archive = JobArchive(self.reader().store, self.batch, self.id)
        end = archive.end(self.run)
        return b"" if end is None else handed_patch(archive, end)

    def reader(self) -> JobReader:
        """What the archive has of the job."""
        from holdfast.archives import Archive

        # A result that was made in a workflow knows its archive by the address alone.
        store = self._store or Archive(self.archive).store
        return JobReader(store, self.batch, self.id)


@dataclass(frozen=True)
class BatchResult:
    """How the jobs of a batch ended, in the order of the jobs file."""

    batch: str
    jobs: tuple[JobResult, ...]

    def __getitem__(self, id: str) -> JobResult:
        """The job of that id."""
        job = next((job for job in self.jobs if job.id == id), None)
        if job is None:
            raise KeyError(id)
        return job

    @property
    def succeeded(self) -> bool:
        """Whether all of them did."""
        return all(job.succeeded for job in self.jobs)

    @property
    def cost_usd(self) -> float:
        """What all of them cost, in US dollars."""
        return sum(job.cost_usd for job in self.jobs)


def result_of(outcome: JobOutcome, store: ObjectStore) -> JobResult:
    """A job's end, with the result that the archive has of it."""
    end = JobArchive(store, outcome.key.batch, outcome.key.job).end(outcome.run)
    return JobResult(
        batch=outcome.key.batch,
        id=outcome.key.job,
        status=outcome.status,
        reason=outcome.reason,
        result=None if end is None else end.result,
        turns=outcome.turns,
        usage=outcome.usage,
        cost_usd=outcome.cost_usd,
        archive=str(store),
        run=outcome.run,
        end=None if outcome.end is None else outcome.end.key,
        _store=store,
    )
