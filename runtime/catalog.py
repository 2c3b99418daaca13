"""Which jobs an archive holds, and what a user may call them."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from runtime.archive import keys
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore
from runtime.errors import NotFound

LAST = "last"
_SHOWN = 8


@dataclass(frozen=True, order=True)
class JobName:
    """A job's batch and id."""

    batch: str
    job: str

    def __str__(self) -> str:
        return f"{self.batch}/{self.job}"

    def archive(self, store: ObjectStore) -> JobArchive:
        """The job's archive."""
        return JobArchive(store, self.batch, self.job)


def all_jobs(store: ObjectStore, batch: str | None = None) -> list[JobName]:
    """Every job that has anything in the archive, sorted."""
    names: list[JobName] = []
    seen = ""
    for key in store.list("" if batch is None else f"{batch}/"):
        parts = key.split("/", 2)
        if len(parts) == 3 and (prefix := f"{parts[0]}/{parts[1]}") != seen:
            seen = prefix
            names.append(JobName(unquote(parts[0]), unquote(parts[1])))
    return sorted(names)


def find_job(store: ObjectStore, given: str) -> JobName:
    """The job that ``given`` names: ``BATCH/ID``, a unique prefix of that or of the id alone, or ``last``.

    Raises:
        NotFound: if no job, or more than one, is so named.
    """
    jobs = all_jobs(store)
    if given == LAST:
        return _newest(store, jobs)
    exact = [name for name in jobs if given in (str(name), name.job)]
    matching = exact or [name for name in jobs if str(name).startswith(given) or name.job.startswith(given)]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        raise NotFound(f"no job is called {given!r}: 'holdfast ls' lists the jobs")
    listed = ", ".join(map(str, matching[:_SHOWN])) + (", …" if len(matching) > _SHOWN else "")
    raise NotFound(f"{given!r} names more than one job: {listed}")


def _newest(store: ObjectStore, jobs: list[JobName]) -> JobName:
    """The job whose newest run began last."""
    begun = [(when, name) for name in jobs if (when := started_at(name.archive(store))) is not None]
    if not begun:
        raise NotFound("no job has begun yet: start some with 'holdfast run JOBS_FILE'")
    return max(begun)[1]


def started_at(archive: JobArchive) -> str | None:
    """When the newest run made its first call (ISO 8601, UTC); None if there was none."""
    for run in archive.runs()[-1:]:
        for key in archive.lineage.keys(run):
            found = keys.parse_turn_key(key)
            if found is not None and found.kind == "attempt":
                return archive.attempts(run, found.turn)[0].started_at
    return None
