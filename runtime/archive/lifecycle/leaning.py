"""What jobs need of each other: runs that were forked from another job's, and what jobs share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from runtime.archive import keys
from runtime.archive.catalog import all_jobs
from runtime.archive.container import unseal
from runtime.archive.references import SHARED, references, shared_references
from runtime.archive.stores.protocol import ObjectStore
from runtime.base.errors import ObjectCorrupt, ObjectMissing

T = TypeVar("T")
AT_A_TIME = 16


def other_jobs(store: ObjectStore, without: Collection[str]) -> list[str]:
    """The prefixes of all jobs but some."""
    found = (keys.job_prefix(name.batch, name.job) for name in all_jobs(store))
    return [job for job in found if job not in without]


def each(act: Callable[[str], T], names: Iterable[str]) -> Iterator[T]:
    """What ``act`` gives for each of the names, several at a time: a store is far away."""
    with ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="holdfast-jobs") as threads:
        yield from threads.map(act, names)


def leaning_on(store: ObjectStore, jobs: Collection[str]) -> dict[str, set[str]]:
    """For each of the jobs the others that were forked from it: their requests are put together
    from its records.
    """

    def parents(other: str) -> tuple[str, set[str]]:
        found: set[str] = set()
        for key in store.list(f"{other}/runs/"):
            try:
                parent = unseal(key, store.get(key), "run").header.get("parent")
            except (ObjectCorrupt, ObjectMissing):
                continue
            if parent is not None:
                found.add(keys.job_prefix_in(parent["key"]))
        return other, found

    leaning: dict[str, set[str]] = {}
    for other, found in each(parents, other_jobs(store, jobs)):
        for job in found.intersection(jobs):
            leaning.setdefault(job, set()).add(other)
    return leaning


def shared_of(store: ObjectStore, job: str) -> set[str]:
    """The keys of what a job names of that which jobs share.

    Effects alone name any: what a tick read, a call gave, or a workspace began with.
    """
    found: set[str] = set()
    for key in store.list(f"{job}/turns/"):
        if ".effect-" not in key:
            continue
        try:
            archived = unseal(key, store.get(key))
        except (ObjectCorrupt, ObjectMissing):
            continue
        found |= {one.key for one in references(archived) if one.key.startswith(SHARED)}
    return found


def with_what_they_name(store: ObjectStore, shared: Iterable[str]) -> set[str]:
    """Shared objects, and those that they name in turn."""
    todo, found = list(shared), set[str]()
    while todo:
        key = todo.pop()
        if key in found:
            continue
        found.add(key)
        try:
            data = store.get(key)
        except ObjectMissing:
            continue
        todo += [one.key for one in shared_references(data) if one.key.startswith(SHARED)]
    return found


def shared_by(store: ObjectStore, jobs: Iterable[str]) -> set[str]:
    """What some jobs need of that which jobs share."""
    named = set[str]().union(*each(lambda job: shared_of(store, job), jobs))
    return with_what_they_name(store, named)
