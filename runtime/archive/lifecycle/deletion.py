"""Deleting jobs from an archive, so that the rest stays whole.

A tombstone is written first, with the digest of all that will be gone; then what points goes, then
what it points to. A process that dies in between leaves a job that ``verify`` calls half deleted,
and the same deletion goes on with it. What other jobs use too, by content, stays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from runtime.archive import keys
from runtime.archive.lifecycle.holds import hold_of
from runtime.archive.lifecycle.leaning import Needs, jobs_needed_by, other_jobs, shared_by
from runtime.archive.lifecycle.tombstones import (
    Tombstone,
    Tombstones,
    deleted_jobs,
    digest_at,
    write_tombstone,
)
from runtime.archive.notices import FOLDER as NOTICES
from runtime.archive.notices import notices_by_key
from runtime.archive.pages import FOLDER as PAGES
from runtime.archive.pages import read_page
from runtime.archive.reading import read_ahead
from runtime.archive.references import SHARED
from runtime.archive.shared_summaries import CLAIMS
from runtime.archive.shared_summaries import FOLDER as SUMMARIES
from runtime.archive.signing import Signer
from runtime.archive.stores import ObjectStore, removing
from runtime.archive.stores.removal import RetainingStore
from runtime.base.digests import digest_bytes
from runtime.base.errors import ArchiveError, ObjectCorrupt, ObjectMissing
from runtime.base.failpoints import failpoint
from runtime.base.values import JobKey

HELD_EACH = 10
"""After so many objects of a job a deletion sees again whether somebody holds it: not after each,
which would ask a bucket twice for each.
"""


@dataclass(frozen=True)
class Wish:
    """Who wants jobs deleted, and why; ``at`` is when, in ISO 8601, UTC."""

    by: str
    at: str
    reason: str
    signer: Signer | None = None


@dataclass(frozen=True)
class Deleted:
    """A job that was deleted, with the number of its ``objects`` that this deletion removed."""

    job: JobKey
    objects: int
    tombstone: Tombstone


def refusals(store: ObjectStore, jobs: Collection[str], known: Mapping[str, str]) -> dict[str, str]:
    """Why some of the jobs (by prefix) cannot be deleted, if all the others are.

    ``known`` are those of which it is known already. Of a job whose deletion has begun only a hold
    keeps what is left. Of one whose hold or tombstone cannot be read nobody knows: it stays, and
    the others go.
    """
    graves = Tombstones(store)
    asked: list[str] = []
    refused: dict[str, str] = {}
    for job in jobs:
        try:
            if _begun(store, graves, job):
                why = _held_by(store, job)
            else:
                asked.append(job)
                why = known.get(job) or _kept_by(store, job)
            if why is not None:
                refused[job] = why
        except ObjectCorrupt as error:
            refused[job] = f"it may be held, or half deleted: {error}"
    # What leans on a job that stays, stays readable; what leans on one that goes must go too.
    others = jobs_needed_by(store, other_jobs(store, set(jobs)))
    refused = _needed(asked, others, "cannot be read without it") | refused
    # To a fixed point: a fork may have been forked itself.
    staying: set[str] = set()
    while more := refused.keys() - staying:
        staying |= more
        refused = _needed(asked, jobs_needed_by(store, sorted(more)), "stays") | refused
    return refused


def _kept_by(store: ObjectStore, job: str) -> str | None:
    """What keeps a job from being deleted by itself.

    Raises:
        ObjectCorrupt: if its hold cannot be read.
    """
    if (why := _held_by(store, job)) is not None:
        return why
    until = _locked_until(store, job)
    return None if until is None else f"it is locked by the bucket until {until.isoformat()}"


def _held_by(store: ObjectStore, job: str) -> str | None:
    hold = hold_of(store, job)
    return None if hold is None else f"it is held: {hold.told}"


def delete_jobs(
    store: ObjectStore,
    jobs: Sequence[str],
    wish: Wish,
    *,
    tell: Callable[[Deleted], None],
) -> list[Deleted]:
    """Delete the jobs under some prefixes, which nothing refuses.

    Raises:
        InputError: if the store removes nothing.
        ArchiveError: if it cannot be written, or keeps what should go; or if a job is held
            meanwhile: then it stays, or what is left of it, and so do all that were to follow it.
    """
    # Before anything is read or written: a store that removes nothing must get no tombstone.
    removing(store)
    graves = Tombstones(store)
    # While all jobs are there: once one is gone, what it shared with the next looks like unused.
    alone = _used_by_these_alone(store, graves, jobs)
    done: list[Deleted] = []
    for job in jobs:
        begun = _begun(store, graves, job)
        own: dict[str, str] = {}
        if begun is None:
            failpoint("archive.delete.before_tombstone")
            own = _own_digests(store, job)
            if not own:
                continue
        _see_not_held(store, job, "it stays")
        if begun is None:
            begun = write_tombstone(
                store,
                job,
                own,
                alone[job],
                by=wish.by,
                at=wish.at,
                reason=wish.reason,
                signer=wish.signer,
            )
            failpoint("archive.delete.after_tombstone")
        # What points goes first, so that a kill in between leaves nothing that names what is gone.
        left = sorted(begun.left(store), key=_pointers_first, reverse=True)
        for number, key in enumerate(left):
            if number % HELD_EACH == 0:
                _see_not_held(store, job, "what is left of it stays")
            removing(store).remove(key)
            failpoint("archive.delete.mid_job")
        done.append(Deleted(keys.job_of(job), len(left), begun))
        tell(done[-1])
    return done


def _see_not_held(store: ObjectStore, job: str, stays: str) -> None:
    """Raise an ArchiveError if a job is held: whoever held it meanwhile was told that it is."""
    if (hold := hold_of(store, job)) is not None:
        raise ArchiveError(
            f"{keys.job_of(job)} is held meanwhile: {hold.told}; {stays}, as do the jobs that were"
            " to follow it"
        )


def sweep(store: ObjectStore) -> list[str]:
    """Remove of what jobs share what tombstones list and no job names any more; the keys.

    No job may be open meanwhile: one that begins may take what is there for its own.

    Raises:
        ObjectCorrupt: if a job may use any of it, since an object that says so cannot be read;
            nothing was removed.
    """
    graves, jobs = Tombstones(store), other_jobs(store, ())
    covered = [
        key for key in store.list(SHARED) if not key.startswith(PAGES) and graves.covering(key)
    ]
    # Which nobody names: a job's go with it.
    told = {key for key in covered if key.startswith(NOTICES)}
    there = [key for key in covered if key not in told]
    pages = (key for key, _ in _pages_of_none(store, graves, jobs))
    # Every job is read for it, which is in vain where nothing could go.
    used = shared_by(store, jobs) if there else Needs()
    if used.unread:
        raise ObjectCorrupt(used.problem)
    unused = {key for key in there if key.partition(CLAIMS)[0] not in used.known}
    removed = []
    # A tree goes before the packs that it names.
    for key in sorted({*unused, *pages, *told}, key=_trees_first):
        removing(store).remove(key)
        removed.append(key)
        failpoint("archive.delete.mid_sweep")
    return removed


def now() -> str:
    """The time, as tombstones and holds have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _needed(asked: Collection[str], others: Mapping[str, Needs], why: str) -> dict[str, str]:
    """Those of the jobs that are asked about which others need, each with the reason, which ends
    with ``why``; and those that others may need which cannot be read.
    """
    forks: dict[str, list[str]] = {}
    unread: dict[str, list[str]] = {}
    for other, needs in others.items():
        for job in needs.known:
            forks.setdefault(job, []).append(other)
        if needs.unread:
            unread.setdefault(_batch_of(other), []).append(other)
    needed: dict[str, str] = {}
    for job in asked:
        if job in forks:
            needed[job] = f"{_names(forks[job])} was forked from it, and {why}"
        # A fork is of the batch of the job that it was forked from.
        elif may_be := unread.get(_batch_of(job)):
            names = _names(may_be)
            problems = "; ".join(others[other].problem for other in may_be)
            needed[job] = (
                f"it may be what {names} was forked from: {problems} (restore what cannot be read,"
                f" or delete {names} too)"
            )
    return needed


def _batch_of(job: str) -> str:
    return job.partition("/")[0]


def _names(jobs: Collection[str]) -> str:
    return ", ".join(str(keys.job_of(job)) for job in sorted(jobs))


def _begun(store: ObjectStore, graves: Tombstones, job: str) -> Tombstone | None:
    """The deletion of a job that was begun and broken off."""
    # The last alone: an earlier deletion is over, and the job may have begun anew since.
    return next((one for one in graves.of_job(job)[-1:] if one.left(store)), None)


def broken_off(store: ObjectStore, jobs: Collection[JobKey]) -> list[Tombstone]:
    """The deletions that were begun and broken off, of some jobs that the archive has anything of.

    One whose tombstone cannot be read is left out: nobody knows what it was to take.
    """
    graves = Tombstones(store)
    begun: list[Tombstone] = []
    # Most of what was ever deleted is gone: it is not looked at.
    for job in sorted({*deleted_jobs(store)} & {*jobs}):
        with suppress(ObjectCorrupt):
            one = _begun(store, graves, keys.job_prefix(job.batch, job.job))
            begun += [] if one is None else [one]
    return begun


def _own_digests(store: ObjectStore, job: str) -> dict[str, str]:
    """The digests of all that a job has; what another deletion takes meanwhile is that one's."""
    digests: dict[str, str] = {}
    for key in store.list(f"{job}/"):
        with suppress(ObjectMissing):
            digests[key] = digest_at(store, key)
    return digests


def _used_by_these_alone(
    store: ObjectStore, graves: Tombstones, jobs: Collection[str]
) -> Mapping[str, Mapping[str, str]]:
    """The digests of what each of these jobs uses and no other job does."""
    used = {job: set(shared_by(store, [job]).known) for job in jobs}
    staying = other_jobs(store, jobs)
    # What the others use and cannot be read is looked for once more, before any goes: ``sweep``.
    others = shared_by(store, staying) if any(used.values()) else Needs()
    for page, named in _pages_of_none(store, graves, staying, jobs):
        for job in named & used.keys():
            used[job].add(page)
    for job, told in _notices_of(store, jobs):
        used[job].add(told)
    return {job: _digests(store, used[job] - others.known) for job in jobs}


def _digests(store: ObjectStore, shared: Collection[str]) -> dict[str, str]:
    claims = {
        key for one in shared if one.startswith(SUMMARIES) for key in store.list(f"{one}{CLAIMS}")
    }
    digests: dict[str, str] = {}
    for key in sorted({*shared, *claims}):
        try:
            digests[key] = digest_bytes(store.get(key))
        except ObjectMissing:
            continue
        # As of the job's own: see ``digest_at``.
        except ObjectCorrupt:
            digests[key] = digest_bytes(b"")
    return digests


def _pointers_first(key: str) -> tuple[int, str]:
    """Larger for what goes first: ends, then the turns from the last on, runs, definitions."""
    folders = ("definition", "replays", "runs", "turns", "ends")
    folder = key.split("/")[2]
    return (folders.index(folder) if folder in folders else len(folders)), key


def _trees_first(key: str) -> tuple[bool, str]:
    return not key.startswith(f"{SHARED}trees/"), key


def _pages_of_none(
    store: ObjectStore, graves: Tombstones, jobs: Collection[str], going: Collection[str] = ()
) -> Iterator[tuple[str, set[str]]]:
    """Pages of definitions of which no job is left, and what jobs they name, where those are left
    that are in ``jobs`` and others are ``going``.
    """
    here = set(jobs)
    for key in store.list(PAGES):
        try:
            orders = read_page(store, key.rpartition("/")[2])
        # A page that cannot be read may be of jobs that are still here: it stays.
        except ObjectCorrupt:
            continue
        named = {keys.job_prefix(one["key"]["batch"], one["key"]["job"]) for one in orders}
        # A job that has not begun yet may have nothing but its page: only tombstones say that it is
        # gone.
        if (
            named
            and not named & here
            and all(job in going or _was_deleted(graves, job) for job in named)
        ):
            yield key, named


def _was_deleted(graves: Tombstones, job: str) -> bool:
    """Whether a tombstone says so. Where that cannot be read, the page stays, and other jobs go."""
    with suppress(ObjectCorrupt):
        return bool(graves.of_job(job))
    return False


def _notices_of(store: ObjectStore, jobs: Collection[str]) -> Iterator[tuple[str, str]]:
    """The notices of the ends of some jobs, each with its job; one that cannot be read may be of
    any, and stays.
    """
    for batch in sorted({keys.job_of(job).batch for job in jobs}):
        for key, notice in notices_by_key(store, batch, []):
            job = keys.job_prefix(batch, notice.job) if notice.job else ""
            if job in jobs:
                yield job, key


def _locked_until(store: ObjectStore, job: str) -> datetime | None:
    """Until when, at least, the bucket keeps any of the job's objects, if it does."""
    if not isinstance(store, RetainingStore):
        return None
    retained_until = store.retained_until

    def look(key: str) -> datetime | None:
        with suppress(ObjectMissing):
            return retained_until(key)
        return None

    # A few tell where nothing is ever locked, and where the job stays for their sake alone. Else
    # each is asked: what was written last is kept for less time than the rest, if the lock was for
    # more days before.
    listed, at = list(store.list(f"{job}/")), datetime.now(UTC)
    few = (*listed[:1], *filter(keys.is_end, listed), *listed[-1:])
    dates = [date for key in few if (date := look(key)) is not None]
    if dates and max(dates) <= at:
        dates = [date for date in read_ahead(listed, look) if date is not None]
    return max((date for date in dates if date > at), default=None)
