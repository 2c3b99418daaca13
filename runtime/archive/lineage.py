"""Which turns a run has: its own, and those of the run that it was reset or forked from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from runtime.archive import keys
from runtime.archive.caches import RecentOfJobs
from runtime.archive.forms import opened
from runtime.archive.keys import TurnKey
from runtime.archive.stores.protocol import ObjectStore
from runtime.base.errors import ObjectCorrupt, ObjectMissing
from runtime.base.values import JobKey

# Runs that start from each other end here: no job comes to so many.
_MOST_RUNS = 10_000


@dataclass(frozen=True)
class Span:
    """The turns from ``first`` to ``last`` (None: no end) of the run whose turns stand under
    ``prefix``.

    ``through`` are the prefixes of runs between the span before and this one, oldest first: see
    ``RunStart``.
    """

    prefix: str
    first: int
    last: int | None
    through: tuple[str, ...] = ()

    @property
    def job(self) -> JobKey:
        """The job that the run is of."""
        return keys.job_of(keys.job_prefix_in(self.prefix))

    @property
    def run(self) -> str:
        """The run whose turns it holds."""
        return keys.run_in(self.prefix)

    @property
    def with_through(self) -> tuple[Span, ...]:
        """The span, and those without turns of the runs between the one before and this, newest
        first.
        """
        between = (Span(prefix, self.first, self.first - 1) for prefix in reversed(self.through))
        return (self, *between)

    def holds(self, turn: int) -> bool:
        """``turn`` is in the span."""
        return self.first <= turn and (self.last is None or turn <= self.last)


def newest_first(spans: Sequence[Span]) -> Iterator[Span]:
    """The spans of a timeline, and those between them."""
    for span in reversed(spans):
        yield from span.with_through


class Lineage:
    """The runs of a job, and of other jobs that it was forked from.

    ``starts`` remembers where runs started. Where a run's start cannot be read, its first turn
    tells the same.
    """

    def __init__(
        self, store: ObjectStore, job: str, starts: RecentOfJobs[Mapping[str, Any]]
    ) -> None:
        self._store = store
        self._job = job
        self._starts = starts

    def spans(self, run: str) -> list[Span]:
        """Where the turns of ``run`` are, oldest first.

        Raises:
            ObjectCorrupt: if neither a run's start nor its first turn can be read, or runs start
                from each other in a circle.
        """
        job, name, last = self._job, keys.name(run), None
        spans: list[Span] = []
        while len(spans) < _MOST_RUNS:
            prefix = f"{job}/turns/{name}/"
            start = self._start(prefix)
            if start is None:
                return [Span(prefix, 0, last), *reversed(spans)]
            spans.append(Span(prefix, start["turn"], last, _through(job, start)))
            if start["parent"] is None:
                return spans[::-1]
            parent = keys.parse_turn_key(start["parent"]["key"])
            if parent is None:
                raise ObjectCorrupt(
                    f"{job}/runs/{name}: its parent {start['parent']['key']} is no step"
                )
            job, name, last = parent.job, parent.run, parent.turn
        raise ObjectCorrupt(f"{self._job}/runs/{keys.name(run)}: its runs start from each other")

    def through(self, run: str) -> tuple[str, ...]:
        """The prefixes of the runs on the way to ``run``, as ``Span`` has them; of no other run
        anything is read.

        Raises:
            ObjectCorrupt: as for ``spans``.
        """
        return _through(self._job, self._start(keys.run_prefix(self._job, run)) or {})

    def turn_prefix(self, run: str, turn: int) -> str:
        """The prefix of a turn's objects, with the final dot, in the run that has the turn."""
        keys.check_turn(turn)
        for span in self.spans(run):
            if span.holds(turn):
                return keys.turn_prefix_in(span.prefix, turn)
        return keys.turn_prefix(self._job, run, turn)

    def keys(self, run: str) -> Iterator[str]:
        """The keys of all objects of the run's turns, in turn order."""
        return (key for key, _ in self.places(run))

    def places(self, run: str) -> Iterator[tuple[str, TurnKey]]:
        """``keys``, each with its parts: to take a long run's keys apart again takes long, too."""
        for span in self.spans(run):
            for key in self._store.list(span.prefix):
                place = keys.parse_turn_key(key)
                # Keys come in the order of turns, so all further ones are beyond the span, too.
                if place is not None and span.last is not None and place.turn > span.last:
                    break
                if place is not None and span.holds(place.turn):
                    yield key, place

    def start(self, key: str) -> Mapping[str, Any]:
        """The start of a run, by its key.

        Raises:
            ObjectCorrupt, ObjectMissing: if it cannot be read.
        """
        start = self._starts.get(key)
        if start is None:
            start = opened(key, self._store.get(key), "run").header
            self._starts.put(key, start)
        return start

    def _start(self, prefix: str) -> Mapping[str, Any] | None:
        """Where the run whose turns stand under ``prefix`` started; None if it has not."""
        try:
            return self.start(keys.run_key_of(prefix))
        except ObjectMissing:
            # Not remembered: a run whose start is not written yet may have one at the next look.
            return self._by_first_turn(prefix)
        except ObjectCorrupt:
            told = self._by_first_turn(prefix)
            if told is None:
                raise
            return told

    def _by_first_turn(self, prefix: str) -> Mapping[str, Any] | None:
        """What a run's start says of its turns, by the calls of its first turn: they have the same
        parent. None where they cannot be read.
        """
        first: int | None = None
        for key in self._store.list(prefix):
            place = keys.parse_turn_key(key)
            if place is None or place.kind not in {"attempt", "step"}:
                continue
            if first is not None and place.turn != first:
                break
            first = place.turn
            with suppress(ObjectCorrupt, ObjectMissing):
                called = opened(key, self._store.get(key), place.kind).header
                parent = keys.parse_turn_key((called["parent"] or {}).get("key", ""))
                # Else the turns before it are gone.
                if parent is None or parent.prefix != prefix:
                    return called
        return None


def _through(job: str, start: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(keys.run_prefix(job, run) for run in start.get("through", ()))
