"""What jobs need of each other: runs that were forked from another job's, and what jobs share."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from runtime.archive import keys
from runtime.archive.catalog import all_jobs
from runtime.archive.container import unseal
from runtime.archive.reading import read_ahead
from runtime.archive.references import SHARED, references, shared_references
from runtime.archive.stores.protocol import ObjectStore
from runtime.base.errors import ObjectCorrupt, ObjectMissing


def other_jobs(store: ObjectStore, without: Collection[str]) -> list[str]:
    """The prefixes of all jobs but some."""
    prefixes = (keys.job_prefix(name.batch, name.job) for name in all_jobs(store))
    return [job for job in prefixes if job not in without]


def parents_of(store: ObjectStore, job: str) -> set[str]:
    """The jobs from which runs of a job were forked, itself among them where it was reset."""
    parents: set[str] = set()
    for key in store.list(f"{job}/runs/"):
        try:
            parent = unseal(key, store.get(key), "run").header.get("parent")
        except (ObjectCorrupt, ObjectMissing):
            continue
        if parent is not None:
            parents.add(keys.job_prefix_in(parent["key"]))
    return parents


def leaning_on(store: ObjectStore, jobs: Collection[str]) -> dict[str, set[str]]:
    """For each of the jobs the others that were forked from it: their requests are put together
    from its attempts.
    """

    others = other_jobs(store, jobs)
    parents = read_ahead(others, lambda other: parents_of(store, other))
    leaning: dict[str, set[str]] = {}
    for other, of in zip(others, parents, strict=True):
        for job in of.intersection(jobs):
            leaning.setdefault(job, set()).add(other)
    return leaning


def shared_of(store: ObjectStore, job: str) -> set[str]:
    """The keys of what a job names of that which jobs share.

    Effects alone name any: what a tick read, a call gave, or a workspace began with.
    """
    shared: set[str] = set()
    for key in store.list(f"{job}/turns/"):
        if ".effect-" not in key:
            continue
        try:
            archived = unseal(key, store.get(key))
        except (ObjectCorrupt, ObjectMissing):
            continue
        shared |= {one.key for one in references(archived) if one.key.startswith(SHARED)}
    return shared


def with_what_they_name(store: ObjectStore, shared: Iterable[str]) -> set[str]:
    """Shared objects, and those that they name in turn."""
    todo, named = list(shared), set[str]()
    while todo:
        key = todo.pop()
        if key in named:
            continue
        named.add(key)
        try:
            data = store.get(key)
        except ObjectMissing:
            continue
        todo += [one.key for one in shared_references(data) if one.key.startswith(SHARED)]
    return named


def shared_by(store: ObjectStore, jobs: Iterable[str]) -> set[str]:
    """What some jobs need of that which jobs share."""
    named = set[str]().union(*read_ahead(jobs, lambda job: shared_of(store, job)))
    return with_what_they_name(store, named)
