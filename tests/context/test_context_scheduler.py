"""The scheduler against a naive one: order, coalescing, staleness, throttling, intervals and caps
of random histories.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from context_memory import Job
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runtime.context.background import Background
from runtime.context.payloads import Preparation
from runtime.history.events import AsyncPayloadApplied, TickApplied
from tests.tiers.tiers import examples

PATHS = ("a", "b", "c", "d")
PER_TURN, AT_A_TIME = 2, 3
FREQS: tuple[Any, ...] = ("Sync", "Async", ("Periodic", 90))

nodes = st.integers(0, len(PATHS) - 1)
operations = st.one_of(
    st.tuples(st.just("tick"), st.sampled_from([0.0, 30.0, 60.0, 90.0, 500.0])),
    st.tuples(st.just("edit"), nodes, st.sampled_from(["x0", "x1", "x2"])),
    st.tuples(st.just("run"), nodes, st.sampled_from(FREQS), st.integers(1, 3)),
    st.tuples(st.just("pause"), nodes),
    st.tuples(st.just("tokens"), nodes, st.integers(1, 2)),
    st.tuples(st.just("ready"), st.integers(0, AT_A_TIME)),
    st.tuples(st.just("ready"), st.integers(0, AT_A_TIME)),
    st.tuples(st.just("failed"), st.integers(0, AT_A_TIME)),
)


@dataclass
class Node:
    """A view as the naive scheduler knows it: what it shows is a pair of content and budget."""

    shows: tuple[str, int]
    tokens: int = 2
    running: bool = False
    freq: Any = None
    throttle: int = 1
    last_turn: int = -1
    last_at: float | None = None
    before: tuple[str, int] | None = None
    projected: tuple[str, int] | None = None

    @property
    def dirty(self) -> bool:
        return self.tokens != self.shows[1]

    @property
    def state(self) -> tuple[Any, ...]:
        """All that a payload may depend on."""
        return self.running, self.freq, self.throttle, self.tokens, self.shows, self.before

    def read(self, content: str) -> bool:
        """A reading; whether it changed anything."""
        was = self.state
        was_dirty = self.dirty
        if (content, self.tokens) != self.shows:
            self.before = self.projected
            self.shows = (content, self.tokens)
        return self.state != was or was_dirty


@dataclass
class Naive:
    """The rules of docs/contract/executable-context.md section 6, written down one by one."""

    files: dict[int, str]
    views: list[Node]
    turn: int = 1
    now: float = 1_000.0
    preparing: list[tuple[int, Any]] = field(default_factory=list)
    queue: list[tuple[int, Any, str]] = field(default_factory=list)
    stale: int = 0
    superseded: int = 0
    applied: int = 0
    failed: int = 0
    read: list[int] = field(default_factory=list)

    def tick(self, seconds: float) -> list[tuple[str, int]]:
        """What the tick changes, in order."""
        self.turn += 1
        self.now += seconds
        log = [("payload", number) for number in self._payloads()]
        due = [
            ("sync", n)
            for n, view in enumerate(self.views)
            if view.dirty or self._due(view, "Sync")
        ]
        asked = {n for _, n in due}
        due += [
            ("periodic", n)
            for n, v in enumerate(self.views)
            if n not in asked and self._due(v, "Periodic")
        ]
        self.read = [n for _, n in due]
        for kind, number in due:
            if self.views[number].read(self.files[number]):
                log.append((kind, number))
            self._ticked(number)
        for view in self.views:
            view.projected = view.shows
        self.cancel()
        return log

    def _payloads(self) -> list[int]:
        queue = [entry for entry in self.queue if self._holds(*entry[:2])]
        self.stale += len(self.queue) - len(queue)
        order: list[int] = []
        for number, *_ in queue:
            if number not in order:
                order.append(number)
        self.superseded += len(queue) - len(order)
        changed = []
        for number in order[:PER_TURN]:
            content = [content for other, _, content in queue if other == number][-1]
            if self.views[number].read(content):
                changed.append(number)
            self._ticked(number)
            self.applied += 1
        self.queue = [
            [entry for entry in queue if entry[0] == number][-1] for number in order[PER_TURN:]
        ]
        return changed

    def _due(self, view: Node, kind: str) -> bool:
        if not view.running:
            return False
        if kind == "Sync":
            return bool(view.freq == "Sync") and (
                view.last_turn == -1 or self.turn >= view.last_turn + view.throttle
            )
        return view.freq[0] == "Periodic" and (
            view.last_at is None or self.now >= view.last_at + view.freq[1]
        )

    def _ticked(self, number: int) -> None:
        if self.views[number].running:
            self.views[number].last_turn, self.views[number].last_at = self.turn, self.now

    def _holds(self, number: int, basis: Any) -> bool:
        view = self.views[number]
        return view.running and view.freq == "Async" and view.state == basis

    def begin(self) -> list[int]:
        """The views for which a preparation starts."""
        busy = {number for number, *_ in (*self.preparing, *self.queue)}
        able = [
            n
            for n, view in enumerate(self.views)
            if view.running
            and view.freq == "Async"
            and n not in busy
            and (view.last_turn == -1 or self.turn + 1 - view.last_turn >= view.throttle)
        ]
        able.sort(key=lambda n: self.views[n].last_turn)
        begun = able[: AT_A_TIME - len(self.preparing)]
        self.preparing += [(n, self.views[n].state) for n in begun]
        return begun

    def cancel(self) -> None:
        """Preparations whose node is no longer what it was."""
        self.preparing = [entry for entry in self.preparing if self._holds(*entry)]


@dataclass
class Real:
    """The graph, with the preparations that run, in the order of their beginning."""

    job: Job
    ids: list[str]
    running: list[Preparation] = field(default_factory=list)
    read: list[int] = field(default_factory=list)

    def tick(self, seconds: float) -> list[tuple[str, int]]:
        self.read = [self.ids.index(obj_id) for obj_id in self.job.tick(seconds)]
        changed = []
        for event in self.job.graph.take_events(lambda: "e"):
            if isinstance(event, AsyncPayloadApplied):
                changed.append(("payload", self.ids.index(event.obj_id)))
            elif isinstance(event, TickApplied):
                changed.append((event.tick_kind, self.ids.index(event.obj_id)))
        self.job.graph.take_deltas()
        self.prune()
        return changed

    def prune(self) -> None:
        alive = self.job.graph.background._running
        self.running = [p for p in self.running if p.payload_id in alive]

    def begin(self) -> list[int]:
        begun = list(self.job.begin().values())
        self.running += begun
        return [self.ids.index(p.obj_id) for p in begun]


def both() -> tuple[Naive, Real]:
    """The same views over the same files."""
    job = Job(dict.fromkeys(PATHS, "x0"))
    job.graph.background = Background(job.graph._store, per_turn=PER_TURN, at_a_time=AT_A_TIME)
    real = Real(job, [job.view(path, tokens=2) for path in PATHS])
    real.job.graph.take_deltas()
    job.graph.take_events(lambda: "e")
    naive = Naive(
        dict.fromkeys(range(len(PATHS)), "x0"),
        [Node(("x0", 2), projected=("x0", 2)) for _ in PATHS],
    )
    return naive, real


def step(naive: Naive, real: Real, operation: tuple[Any, ...]) -> None:
    """One operation on both, which must come to the same."""
    job = real.job
    match operation:
        case ("tick", seconds):
            assert real.tick(seconds) == naive.tick(seconds)
            assert real.read == naive.read
            assert [job.get(node, "last_tick_turn") for node in real.ids] == [
                view.last_turn for view in naive.views
            ]
            assert real.begin() == naive.begin()
        case ("edit", number, content):
            naive.files[number] = job.files[PATHS[number]] = content
        case ("run", number, freq, throttle):
            job.on(real.ids[number], "Run", freq=freq, min_turn_interval=throttle)
            view = naive.views[number]
            if (view.running, view.freq) != (True, freq):
                view.last_at = None
            view.running, view.freq, view.throttle = True, freq, throttle
        case ("pause", number):
            job.on(real.ids[number], "Pause")
            naive.views[number].running = False
        case ("tokens", number, tokens):
            job.on(real.ids[number], "SetTokens", tokens)
            naive.views[number].tokens = tokens
        case ("ready", pick) if naive.preparing:
            pick %= len(naive.preparing)
            number, basis = naive.preparing.pop(pick)
            naive.queue.append((number, basis, naive.files[number]))
            job.prepared(real.running.pop(pick))
        case ("failed", pick) if naive.preparing:
            pick %= len(naive.preparing)
            naive.preparing.pop(pick)
            naive.failed += 1
            job.graph.background.failed(real.running.pop(pick).payload_id, real.job.now)
    job.graph.background.cancel()
    real.prune()
    naive.cancel()
    assert [real.ids.index(p.obj_id) for p in real.running] == [
        number for number, _ in naive.preparing
    ]
    tally = job.graph.background.tally
    assert (tally.applied, tally.stale, tally.superseded, tally.failed) == (
        naive.applied,
        naive.stale,
        naive.superseded,
        naive.failed,
    )
    assert [job.get(node, "text") for node in real.ids] == [view.shows[0] for view in naive.views]


ASYNC = [("run", number, "Async", 1) for number in range(4)]
STALE = [
    *ASYNC,
    ("tick", 60.0),
    ("edit", 0, "x1"),
    ("ready", 0),
    ("tokens", 0, 1),
    ("tick", 60.0),
    ("tick", 60.0),
]
CAPPED = [
    *ASYNC,
    ("tick", 60.0),
    *[("edit", n, "x1") for n in range(4)],
    *[("ready", 0)] * 3,
    *[("tick", 60.0)] * 3,
]
PERIODIC = [("run", 0, ("Periodic", 90), 1), ("run", 1, "Sync", 1)]
ORDERED = [
    *PERIODIC,
    ("tick", 60.0),
    ("tick", 60.0),
    ("edit", 0, "x1"),
    ("edit", 1, "x1"),
    ("tick", 30.0),
    ("tick", 90.0),
]


@settings(max_examples=examples(150))
@given(st.lists(operations, max_size=40))
@example(STALE)
@example(CAPPED)
@example(ORDERED)
def test_the_scheduler_does_what_the_naive_one_does(history: list[tuple[Any, ...]]) -> None:
    """The same changes in the same order at every tick, the same preparations, the same drops; and
    again when replayed.
    """
    naive, real = both()
    for operation in history:
        step(naive, real, operation)
    again = both()
    for operation in history:
        step(*again, operation)
    assert again[1].job.graph.dump() == real.job.graph.dump()


def test_no_node_is_starved_by_the_cap() -> None:
    """Though every source changes all the time, and two payloads are applied a turn, each view is
    updated every other turn.
    """
    naive, real = both()
    for operation in ASYNC:
        step(naive, real, operation)
    seen: list[list[int]] = []
    for turn in range(1, 13):
        for number in range(4):
            step(naive, real, ("edit", number, f"x{turn}"))
        changed = real.tick(60.0)
        assert changed == naive.tick(60.0)
        assert real.begin() == naive.begin()
        seen.append([number for _, number in changed])
        while naive.preparing:
            step(naive, real, ("ready", 0))
    assert all(len(changed) == 2 for changed in seen[1:])
    counts = [sum(number in changed for changed in seen) for number in range(4)]
    assert max(counts) - min(counts) <= 1
