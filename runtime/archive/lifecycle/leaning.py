"""What jobs need of each other: runs that were forked from another job's, and what jobs share.

What cannot be read may need anything; so who asks is told of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.archive import keys
from runtime.archive.catalog import all_jobs
from runtime.archive.forms import Effect, Form, ReplayForm, RunStart
from runtime.archive.forms.trees import TreeForm
from runtime.archive.gaps import UNREADABLE, gap_of
from runtime.archive.reading import read_ahead
from runtime.archive.references import SHARED
from runtime.archive.stores.protocol import ObjectStore
from runtime.archive.trees import TREES


@dataclass(frozen=True)
class Needs:
    """What is needed, as far as that can be read: prefixes of jobs, or keys of what jobs share.

    ``unread`` are the objects that may say more and cannot be read, each with what is wrong.
    """

    known: frozenset[str] = frozenset()
    unread: tuple[str, ...] = ()

    @property
    def problem(self) -> str:
        """What cannot be read: the first of it, since all may be much."""
        more = f" (and {len(self.unread) - 1} more)" if len(self.unread) > 1 else ""
        return f"{self.unread[0]}{more}"


def other_jobs(store: ObjectStore, without: Collection[str]) -> list[str]:
    """The prefixes of all jobs but some."""
    prefixes = (keys.job_prefix(name.batch, name.job) for name in all_jobs(store))
    return [job for job in prefixes if job not in without]


def jobs_needed_by(store: ObjectStore, jobs: Collection[str]) -> dict[str, Needs]:
    """The jobs that each of some needs: those from which its runs were forked, and those of which
    they take steps, as from statement 1 on; itself among them where it was reset.
    """
    read = read_ahead(jobs, lambda job: _sources_of(store, job))
    return dict(zip(jobs, read, strict=True))


def shared_by(store: ObjectStore, jobs: Iterable[str]) -> Needs:
    """What some jobs need of that which jobs share."""
    reading, todo, named = _Reading(store), list[str](), set[str]()
    for needs in read_ahead(jobs, lambda job: _shared_of(store, job)):
        todo += needs.known
        reading.unread += needs.unread
    while todo:
        key = todo.pop()
        if key in named:
            continue
        named.add(key)
        # Of what jobs share, versions of workspaces alone need more of it.
        if key.startswith(TREES):
            todo += reading.header(key, TreeForm).get("uses", {})
    return Needs(frozenset(named), tuple(reading.unread))


def _sources_of(store: ObjectStore, job: str) -> Needs:
    """See ``jobs_needed_by``."""
    reading, needed, claims = _Reading(store), set[str](), set[str]()
    for key in _starts(store, job):
        start = reading.header(key, RunStart)
        claims.update(start.get("claims", {}))
        if (parent := start.get("parent")) is not None:
            needed.add(keys.job_prefix_in(parent["key"]))
    # A claim tells of an order that is lost.
    listed = {*store.list(f"{job}/replays/"), *claims}
    for key in sorted({one.removesuffix(keys.CLAIM) for one in listed}):
        order = reading.header(key, ReplayForm).get("order", {})
        source = order.get("source")
        if source is not None and _needs_source(order, begun=key + keys.CLAIM in claims):
            needed.add(keys.job_prefix(source["batch"], source["job"]))
    return Needs(frozenset(needed), tuple(reading.unread))


def _starts(store: ObjectStore, job: str) -> Iterator[str]:
    """The keys of the starts of a job's runs; also of lost ones, of which calls tell."""
    there = set(store.list(f"{job}/runs/"))
    yield from sorted(there)
    for run in store.folders(f"{job}/turns/"):
        key = f"{job}/runs/{run}"
        if key not in there and any(map(keys.is_attempt, store.list(f"{job}/turns/{run}/"))):
            yield key


def _needs_source(order: Mapping[str, Any], *, begun: bool) -> bool:
    """Whether the run of a replay's order needs more of its source than its start names."""
    # The requests of its turns name the steps whose replies they have.
    if order.get("mode", "rerun") != "rerun":
        return True
    # Turns before its first are restored from there until it has begun.
    return order.get("start", 1) > 1 and not begun


def _shared_of(store: ObjectStore, job: str) -> Needs:
    """What a job names of that which jobs share.

    Effects alone name any: what a tick read, a call gave, or a workspace began with.
    """
    reading, shared = _Reading(store), set[str]()
    # Not its turns alone: a damaged pack, which may hide any of them, is listed beside them.
    for key in store.list(f"{job}/"):
        place = keys.parse_turn_key(key)
        if keys.packed_prefix(key) is not None:
            reading.unread.append(f"{key} is damaged")
        elif place is not None and place.kind == "effect":
            uses = reading.header(key, Effect).get("uses", {})
            shared.update(one for one in uses if one.startswith(SHARED))
    return Needs(frozenset(shared), tuple(reading.unread))


class _Reading:
    """Reads headers; ``unread`` are the objects that cannot be read, each with what is wrong."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.unread: list[str] = []

    def header(self, key: str, form: type[Form]) -> Mapping[str, Any]:
        """An object's header; empty if it cannot be read."""
        try:
            return form.opened(key, self._store.get(key)).header
        except UNREADABLE as error:
            self.unread.append(str(gap_of(error, key)))
            return {}
