"""Jobs that are deleted while a command reads them: told as that, and neither as damage nor as all
that there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from runtime.base.errors import ArchiveError, HoldfastError, NotFound
from runtime.cli.output import note

if TYPE_CHECKING:
    from runtime.archive.lifecycle.tombstones import Tombstone
    from runtime.archive.stores import ObjectStore
    from runtime.base.values import JobKey

_read: dict[JobKey, ObjectStore] = {}
"""The jobs that the command reads, and where: one command at a time is given."""


def job_to_read(objects: ObjectStore, named: str) -> JobKey:
    """The job that ``named`` names, for a command that tells what the archive has of it.

    Raises:
        NotFound: as ``find_job``.
    """
    from runtime.archive.catalog import find_job

    job = find_job(objects, named)
    _read[job] = objects
    return job


def jobs_to_read(objects: ObjectStore, named: str) -> list[JobKey]:
    """All jobs of the batch ``named``, or the job that it names.

    Raises:
        NotFound: as ``find_job``.
    """
    from runtime.archive.catalog import all_jobs

    jobs = all_jobs(objects, named)
    _read.update(dict.fromkeys(jobs, objects))
    return jobs or [job_to_read(objects, named)]


@contextmanager
def reading() -> Iterator[None]:
    """A command, after which it is seen whether what it read is there still.

    Raises:
        NotFound: if a job is gone, whatever of it was told.
    """
    _read.clear()
    try:
        yield
    except HoldfastError as error:
        for job, (grave, _) in _deleted().items():
            raise NotFound(f"{job} {grave.told}") from error
        raise
    for job, (grave, left) in _deleted().items():
        if not left:
            raise NotFound(f"{job} {grave.told}: what was told of it may lack something")
        note(f"{job} {grave.told}: this is of what is left of it")


def _deleted() -> dict[JobKey, tuple[Tombstone, bool]]:
    """What was deleted of the jobs that were read, and whether something is left."""
    from runtime.archive import keys
    from runtime.archive.lifecycle.tombstones import last_deletion

    deleted = {}
    # A store that is away has been told of, or has told all that was asked.
    with suppress(ArchiveError):
        for job, objects in _read.items():
            if (last := last_deletion(objects, job)) is None:
                continue
            grave, left = last
            # Begun anew since, it has what the tombstone does not cover.
            if left or not any(objects.list(f"{keys.job_prefix(job.batch, job.job)}/")):
                deleted[job] = grave, bool(left)
    return deleted
