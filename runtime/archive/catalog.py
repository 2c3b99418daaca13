"""Which jobs an archive holds, and what a user may call them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from urllib.parse import unquote
from uuid import UUID, uuid4

from runtime.archive import keys
from runtime.archive.job import JobArchive
from runtime.archive.lifecycle.tombstones import deleted_jobs, tombstones_of
from runtime.archive.references import SHARED
from runtime.archive.stores import ObjectStore, unmarked
from runtime.base.digests import canonical_json
from runtime.base.errors import InputError, NotFound, ObjectCorrupt, ObjectMissing
from runtime.base.values import JobKey

LAST = "last"
_SHOWN = 8


def all_jobs(store: ObjectStore, batch: str | None = None) -> list[JobKey]:
    """Every job that has anything in the archive, sorted. Looks at no job's objects.

    Raises:
        InputError: if the batch has no name, as that of a variable which is not set.
    """
    if batch == "":
        raise InputError("'' names no batch: 'holdfast ls' lists the jobs of all")
    batches = store.folders("") if batch is None else [keys.name(batch)]
    # Some stores keep a folder of which all objects were removed.
    gone = {*deleted_jobs(store, batch)}
    return sorted(
        job
        for job in _listed(store, batches)
        if job not in gone or any(store.list(f"{keys.job_prefix(job.batch, job.job)}/"))
    )


def check_free(url: str) -> None:
    """See that an archive can begin where none is: folders of something else would be jobs of it.
    What is left of an archive is none of these.

    Raises:
        InputError: if there are such, or the address is of no known kind.
        ArchiveError: if the store cannot be read.
    """
    place = unmarked(url)
    if place is None or next(place.list(SHARED), None) is not None:
        return
    # Somebody else may have begun one there meanwhile.
    if (others := all_jobs(place)) and unmarked(url) is not None:
        raise InputError(
            f"{url} holds something else than an archive, and {others[0]} would be one of its jobs:"
            " name an empty place"
        )


def _listed(store: ObjectStore, batches: Iterable[str]) -> Iterator[JobKey]:
    return (
        JobKey(batch=unquote(folder), job=unquote(job))
        for folder in batches
        # Also the folder of tries, which stands beside the archive's own.
        if not folder.startswith("_holdfast")
        for job in store.folders(f"{folder}/")
    )


def find_job(store: ObjectStore, named: str) -> JobKey:
    """The job that ``named`` names: ``BATCH/ID``, a unique prefix of that or of the id alone, or
    ``last``.

    Raises:
        NotFound: if no job, or more than one, is so named.
    """
    jobs = all_jobs(store)
    if named == LAST:
        return _newest(store, jobs)
    # A whole name is meant itself, also where others begin with it.
    exact = [name for name in jobs if named in (str(name), name.job)]
    matching = exact or [
        name for name in jobs if str(name).startswith(named) or name.job.startswith(named)
    ]
    if not matching or not named:
        name, at, turn = named.rpartition("@")
        if at and turn.isdigit() and any(name in (str(job), job.job) for job in jobs):
            raise NotFound(
                f"no job is called {named!r}: this takes a job without a turn, as in {name!r}"
            )
        batch, _, job = named.partition("/")
        if graves := tombstones_of(store, keys.job_prefix(batch, job)) if batch and job else []:
            raise NotFound(f"{named} {graves[-1].told}")
        if job and any(one.batch == batch for one in jobs):
            # The archive knows of no job that is queued; its batch's workflow does.
            raise NotFound(
                f"no job that has begun is called {named!r}: 'holdfast results {batch}' tells of"
                " those too that have not"
            )
        raise NotFound(f"no job that has begun is called {named!r}: 'holdfast ls' lists those")
    if len(matching) == 1:
        return matching[0]
    listed = ", ".join(map(str, matching[:_SHOWN])) + (", …" if len(matching) > _SHOWN else "")
    raise NotFound(f"{named!r} names more than one job: {listed}")


def archive_id(store: ObjectStore) -> str:
    """The archive's own name, by which it is known under whatever address it is reached; made when
    first asked for.

    Raises:
        ObjectCorrupt: if what is there is none.
    """
    # Looked up first: where the disk is full, what is there can be told all the same.
    if (known := known_archive_id(store)) is not None:
        return known
    store.put_if_absent(keys.ARCHIVE_ID, canonical_json({"id": str(uuid4())}))
    # Read back: of two processes that ask first one has made it.
    return _id_in(store.get(keys.ARCHIVE_ID))


def known_archive_id(store: ObjectStore) -> str | None:
    """The same, None where nobody asked for it yet: for those who write nothing.

    Raises:
        ObjectCorrupt: if what is there is none.
    """
    try:
        return _id_in(store.get(keys.ARCHIVE_ID))
    except ObjectMissing:
        return None


def _id_in(data: bytes) -> str:
    try:
        return str(UUID(json.loads(data)["id"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ObjectCorrupt(f"{keys.ARCHIVE_ID}: is not the id of an archive") from None


def _newest(store: ObjectStore, jobs: list[JobKey]) -> JobKey:
    """The job whose newest run began last."""
    begun = [
        (when, name)
        for name in jobs
        if (when := JobArchive.of(store, name).last_start()) is not None
    ]
    if not begun:
        raise NotFound("no job has begun yet: start some with 'holdfast run JOBS_FILE'")
    return max(begun)[1]
