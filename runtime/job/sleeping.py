"""A job's sleep: what ``wait`` and ``wait_for`` ask for, carried out when the statement has ended
(docs/design.md section 5).

Asleep, a job is timers: no model call of its own, no activity that runs on. Periodic nodes are read
when they are due, and nodes that are waited for also when they have no interval of their own, ever
more seldom: a tenth of the time waited so far lies between two readings, at least ``LEAST_SECONDS``
and at most ``MOST_SECONDS``, and the last is at the deadline. Each reading is a tick like any
other. Summaries that are still to be written when the job falls asleep are begun then, and async
nodes that are waited for are prepared where others would be read; what is ready is applied at a
tick of its own. A user's message ends the sleep, all of it; the time that was set, or a change that
was waited for, ends one wait.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from runtime.base.values import Value
from runtime.context.describe import listed
from runtime.context.feed import Delta
from runtime.context.graph import ContextGraph
from runtime.context.interim import Interim
from runtime.context.payloads import Applied
from runtime.context.sources import ReadResult, ReadStatus
from runtime.context.states import Wait

LEAST_SECONDS = 5.0
"""Between two ticks of a sleeping job."""

MOST_SECONDS = 300.0
"""Between two readings of a node that is waited for."""

_WOKEN = re.compile(r"^wait: (slept [\d,]+ s; woken by .+)$", re.MULTILINE)
"""The line of a prompt's feed that tells how a sleep ended: see ``Sleeping.wake``."""

MOST_TICKS = 10_000
"""Ticks with news after which a sleep is over: each stands in the archive, and the list of them in
a step.
"""

NEVER = float("-inf")


class Sleep(Value):
    """A sleep that has begun, between two of its ticks. Times are workflow time, in seconds.

    ``waits`` are still to be slept through, the first of them since ``began``; ``known`` are the
    signatures of the nodes that it waits for, as they were then, and ``unwritten`` those of them
    for whose summaries something else stands in. ``news`` are the times of the ticks that brought
    something new, ``payloads`` what these applied, as ``Interim.asleep`` has it, and ``dropped`` is
    how many were dropped.
    """

    waits: tuple[Wait, ...]
    since: float
    began: float
    known: dict[str, str] = {}
    unwritten: tuple[str, ...] = ()
    last_tick: float | None = None
    last_look: float | None = None
    ticks: int = 0
    news: tuple[float, ...] = ()
    payloads: tuple[tuple[int, str, int, int], ...] = ()
    dropped: int = 0

    @property
    def wait(self) -> Wait:
        """The wait that is going on."""
        return self.waits[0]

    @property
    def deadline(self) -> float:
        """When the wait is over, whatever happens."""
        return float("inf") if self.wait.seconds is None else self.began + self.wait.seconds

    def look_at(self) -> float:
        """When the nodes that are waited for are to be read next; the first time at once, the last
        at the deadline.
        """
        if not self.wait.change:
            return float("inf")
        if self.last_look is None:
            return NEVER
        # A tenth of the wait: a long one costs few readings, and is noticed with little delay for
        # its length.
        pause = min(max((self.last_look - self.began) / 10, LEAST_SECONDS), MOST_SECONDS)
        return min(self.last_look + pause, self.deadline)

    def is_over(self, now: float) -> bool:
        """Whether the time of the wait is over, and a wait for a change has looked then: it may
        have come at the last moment.
        """
        looked = not self.wait.change or (
            self.last_look is not None and self.last_look >= self.deadline
        )
        return now >= self.deadline and looked

    def alarm(self, next_due: float, *, ready: bool) -> float:
        """When something is to be done next, if a periodic tick is due at ``next_due``, and at once
        if payloads are ``ready``.
        """
        # Ready payloads wait for it too: each tick that brings something is an entry in the
        # archive.
        earliest = NEVER if self.last_tick is None else self.last_tick + LEAST_SECONDS
        soon = NEVER if ready else min(self.look_at(), next_due)
        return min(self.deadline, max(soon, earliest))


class SavedSleeping(Value):
    """What a checkpoint has of a sleep: one that a statement asked for, before its first tick."""

    sleep: Sleep | None = None


class Sleeping:
    """Whether a job sleeps, and what it did until it woke. ``state`` is None while it is awake."""

    def __init__(self) -> None:
        self.state: Sleep | None = None
        self._over = Interim()
        self._looking: tuple[str, ...] = ()
        self._looked = False
        # True in a run that goes on with a sleep: what an earlier one prepared was not taken along.
        self._fell_asleep = True

    # A checkpoint is made before a sleep's first tick.
    MADE_ANEW: ClassVar[frozenset[str]] = frozenset(
        {"_over", "_looking", "_looked", "_fell_asleep"}
    )

    def saved(self) -> SavedSleeping:
        """For a checkpoint."""
        return SavedSleeping(sleep=self.state)

    def restore(self, saved: SavedSleeping) -> None:
        """As it was saved."""
        self.state = saved.sleep

    def fall_asleep(self, graph: ContextGraph, waits: tuple[Wait, ...], now: float) -> None:
        """Begin with what a statement asked for."""
        known = graph.awaited(waits[0])
        self._fell_asleep = True
        self.state = Sleep(
            waits=waits, since=now, began=now, known=known, unwritten=graph.unwritten(known)
        )

    def alarm(self, graph: ContextGraph) -> float | None:
        """The workflow time at which there is something to do; None if the job is awake."""
        if self.state is None:
            return None
        return self.state.alarm(graph.next_due(), ready=graph.background.waiting)

    def wake(self, reason: str, now: float) -> None:
        """End the sleep."""
        if self.state is not None:
            self._end(self.state, f"slept {now - self.state.since:,.0f} s; woken by {reason}")

    def repeat(self, interim: Interim) -> None:
        """End a sleep as it ended in the record that is followed."""
        if self.state is not None:
            self._end(
                self.state,
                interim.woken or "did not sleep: the record that is followed did not either",
            )

    def await_all(self, graph: ContextGraph) -> None:
        """Look at what any of the waits is for: a record does not tell of which a tick was."""
        if (state := self.state) is not None:
            known = {o: was for wait in state.waits for o, was in graph.awaited(wait).items()}
            self.state = state.model_copy(update={"known": known})

    def left_of(self, interim: Interim) -> tuple[float, ...]:
        """The ticks of the recorded sleep that this one has not repeated yet."""
        return interim.ticks[len(self.state.news) :] if self.state is not None else ()

    def payloads_of(self, interim: Interim) -> tuple[tuple[str, int, int], ...]:
        """What the next tick of the recorded sleep applied."""
        number = len(self._asleep().news)
        return tuple(
            (node, turn, effect) for tick, node, turn, effect in interim.asleep if tick == number
        )

    def is_over(self, graph: ContextGraph, now: float) -> bool:
        """Whether the time of the wait is over, which then ends."""
        state = self._asleep()
        if not state.is_over(now):
            return False
        self._next(graph, "the timeout" if state.wait.change else "the time that was set", now)
        return True

    def landed(self, applied: Sequence[Applied], dropped: int) -> None:
        """Remember what the tick that has begun applied and dropped."""
        state = self._asleep()
        tick = len(state.news)
        new = tuple((tick, payload.obj_id, payload.turn, payload.effect) for payload in applied)
        self.state = state.model_copy(
            update={"payloads": (*state.payloads, *new), "dropped": state.dropped + dropped}
        )

    def to_prepare(self, graph: ContextGraph) -> tuple[str, ...] | None:
        """The nodes for which payloads are prepared now: when the job falls asleep, also in another
        run, and after each look.

        None if the job is awake.
        """
        if self.state is None:
            return None
        falling, self._fell_asleep = self._fell_asleep, False
        if not falling and not self._looked:
            return ()
        return graph.to_prepare_asleep(self.state.known, falling=falling)

    def look(
        self, graph: ContextGraph, now: float, *, all_of_them: bool = False
    ) -> tuple[str, ...]:
        """The nodes that the sleeping job's tick at ``now`` looks at, beside those that are due."""
        state = self._asleep()
        self._looked = all_of_them or now >= state.look_at()
        self._looking = graph.to_look_at(state.known) if self._looked else ()
        return self._looking

    def ticked(
        self,
        graph: ContextGraph,
        results: Sequence[ReadResult],
        now: float,
        *,
        news: bool,
        repeated: bool,
    ) -> None:
        """Take the tick's readings, which the graph has: the wait is over if a node that was waited
        for has changed.

        There may be ``news`` beside them: a view that was marked as behind and is no more, a group
        that was recomputed. A ``repeated`` sleep ends as recorded.
        """
        state = self._asleep()
        new = news or any(result.status is not ReadStatus.UNCHANGED for result in results)
        # What was applied is news as well, though nothing that was read had changed.
        new |= any(tick == len(state.news) for tick, *_ in state.payloads)
        changes = {
            "ticks": state.ticks + 1,
            "last_tick": now,
            "last_look": now if self._looked else state.last_look,
            "news": (*state.news, now) if new else state.news,
        }
        self.state = state.model_copy(update=changes)
        if repeated:
            return
        unwritten = graph.unwritten(state.known)
        written = [graph.name(obj_id) for obj_id in state.unwritten if obj_id not in unwritten]
        self.state = self.state.model_copy(update={"unwritten": unwritten})
        if names := graph.changed_since(state.known):
            self._next(graph, f"a change of {listed(names)}", now)
        elif written:
            self._next(graph, f"the summary of {listed(written)}", now)
        elif len(self.state.news) >= MOST_TICKS:
            self.wake(f"{MOST_TICKS:,} ticks with news", now)

    def ended(self, graph: ContextGraph, jobs: Sequence[str], now: float) -> bool:
        """Whether one of the sub-jobs that have ended is waited for: then the wait is over."""
        state = self.state
        if state is None or not jobs or not state.wait.change:
            return False
        names = graph.views_of(jobs, state.known)
        if names:
            self._next(graph, f"the end of {listed(names)}", now)
        return bool(names)

    def take(self) -> Interim:
        """What there is to record of the sleep that is over, if there was one."""
        taken, self._over = self._over, Interim()
        return taken

    @property
    def looking(self) -> tuple[str, ...]:
        """The nodes that the tick under way looks at, beside those that are due."""
        return self._looking

    @property
    def deltas(self) -> tuple[Delta, ...]:
        """The line of the feed that says what woke the job."""
        return (Delta("wait", "wait", "wait", self._over.woken),) if self._over.woken else ()

    def _asleep(self) -> Sleep:
        if self.state is None:
            raise RuntimeError("the job is awake")
        return self.state

    def _next(self, graph: ContextGraph, reason: str, now: float) -> None:
        """A wait is over: the next one begins, or the job wakes."""
        state = self._asleep()
        rest = state.waits[1:]
        if not rest:
            self.wake(reason, now)
            return
        known = graph.awaited(rest[0])
        unwritten = graph.unwritten(known)
        changes = {
            "waits": rest,
            "began": now,
            "known": known,
            "unwritten": unwritten,
            "last_look": None,
        }
        self.state = state.model_copy(update=changes)

    def _end(self, state: Sleep, woken: str) -> None:
        self.state = None
        self._over = Interim(
            woken=woken, ticks=state.news, asleep=state.payloads, dropped=state.dropped
        )


def woken_in(feed: str) -> str:
    """How the sleep ended of which a prompt's feed tells; empty if it tells of none."""
    told = _WOKEN.search(feed)
    return told[1] if told is not None else ""
