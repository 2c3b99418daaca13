"""Where all node states live, and the one gate through which they change.

The gate is open during a call and during a tick, and shut otherwise
(docs/contract/executable-context.md section 1.5). It keeps the state each node had when the model
was last shown something: the delta feed and level 3 compare with that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar

from runtime.base.characters import as_literal
from runtime.context.describe import describe_change
from runtime.context.index import Index
from runtime.context.outcomes import NodeRef
from runtime.context.states import (
    AnyNode,
    ContextValue,
    GroupState,
    NoteState,
    RenderedView,
    ViewState,
    Wait,
)


class Cause(StrEnum):
    """What opened the gate; it decides which event a change becomes.

    ``ASLEEP``: groups at a tick between two turns.
    """

    CALL = "call"
    TICK = "sync"
    PERIODIC = "periodic"
    PAYLOAD = "payload"
    RECOMPUTE = "recompute"
    ASLEEP = "asleep"


REPR_LIMIT = 120
"""Characters of an argument's repr in ``MethodCalled``."""


@dataclass
class EventWish:
    """Whether a call becomes an event."""

    wanted: bool = True


class PendingEvent(ContextValue):
    """An event that waits for its id.

    ``fields`` are those of the event of that name in docs/contract/executable-context.md section
    3.3.
    """

    type: str
    fields: dict[str, Any]


@dataclass(frozen=True)
class Snapshot:
    """Everything that a statement may change, as it was. The states are shared, not copied."""

    nodes: dict[str, AnyNode]
    counter: int
    names: dict[str, str]
    shown_before: dict[str, AnyNode | None]
    changed: frozenset[str]
    recorded: dict[str, str]
    events: tuple[PendingEvent, ...]
    waits: tuple[Wait, ...]


class NodeStore:
    """The states by ``obj_id`` in creation order, and what has happened to them.

    ``writer`` tells whether a model writes summaries in this job. ``held`` are the nodes that
    variables held, or a wait waited for, when the last statement ended; None before the first did.
    ``sub_jobs`` are the addresses of the job's own sub-jobs, and whether each has ended.
    """

    def __init__(self, count: Callable[[str], int], *, writer: bool = False) -> None:
        self.count = count
        self.writer = writer
        self._nodes: dict[str, AnyNode] = {}
        self.index = Index()
        self.counter = 0
        self.names: dict[str, str] = {}
        self.held: tuple[str, ...] | None = None
        self.shown_before: dict[str, AnyNode | None] = {}
        self.changed: frozenset[str] = frozenset()
        self.recorded: dict[str, str] = {}
        self.events: list[PendingEvent] = []
        self.waits: list[Wait] = []
        self.sub_jobs: dict[str, bool] = {}
        self._turn: int | None = None
        self._now = 0.0
        self._thread = 0
        self._digests: dict[str, tuple[AnyNode, str]] = {}

    # Who makes a store gives the first two, each run of the job tells of its sub-jobs, an open call
    # has the underlined three, and the rest is made from the nodes.
    MADE_ANEW: ClassVar[frozenset[str]] = frozenset(
        {"count", "writer", "sub_jobs", "_turn", "_now", "_thread", "index", "_digests"}
    )

    @contextmanager
    def open(self, turn: int, now: float = 0.0) -> Iterator[None]:
        """Let nodes change, in ``turn``.

        ``now`` is the workflow time of a tick, in seconds; calls do not know it.
        """
        outer = self._turn, self._now, self._thread
        self._turn, self._now, self._thread = turn, now, threading.get_ident()
        try:
            yield
        finally:
            self._turn, self._now, self._thread = outer

    @property
    def nodes(self) -> Mapping[str, AnyNode]:
        """The states by ``obj_id``, to look at: ``add`` and ``put`` are the only ways to change
        them.
        """
        return MappingProxyType(self._nodes)

    def fill(self, nodes: Mapping[str, AnyNode]) -> None:
        """Take over the nodes of a checkpoint, or of a snapshot."""
        # The index first: it compares with the nodes that are still there.
        self.index.fill(self._nodes, nodes)
        self._nodes = dict(nodes)

    def _keep(self, state: AnyNode) -> None:
        self._nodes[state.obj_id] = state
        self.index.keep(state)

    @property
    def turn(self) -> int:
        """The turn of the call or tick that is going on.

        Raises:
            RuntimeError: when there is none, or it is another thread's: a node was about to change
                outside a call and outside a tick, which is what background work must never do
                (docs/contract/executable-context.md section 1.5).
        """
        if self._turn is None or self._thread != threading.get_ident():
            raise RuntimeError("nodes change only during a call or a tick")
        return self._turn

    @property
    def now(self) -> float:
        """The workflow time of the tick that is going on, in seconds."""
        self._require_open()
        return self._now

    def _require_open(self) -> None:
        _ = self.turn

    def next_id(self, obj_type: str) -> str:
        """A new ``obj_id``: one counter for all types. A ``view`` that fails leaves a gap."""
        self._require_open()
        self.counter += 1
        return f"{obj_type}-{self.counter}"

    def view(self, obj_id: str) -> ViewState:
        """The state of a view.

        Raises:
            KeyError: if there is no such node.
            TypeError: if it is no view.
        """
        state = self.nodes[obj_id]
        if not isinstance(state, ViewState):
            raise TypeError(f"{obj_id} is a {state.obj_type}, not a view")
        return state

    def group(self, obj_id: str) -> GroupState:
        """The state of a group; errors as in ``view``."""
        state = self.nodes[obj_id]
        if not isinstance(state, GroupState):
            raise TypeError(f"{obj_id} is a {state.obj_type}, not a group")
        return state

    def note(self, obj_id: str) -> NoteState:
        """The state of a note; errors as in ``view``."""
        state = self.nodes[obj_id]
        if not isinstance(state, NoteState):
            raise TypeError(f"{obj_id} is a {state.obj_type}, not a note")
        return state

    def add(self, state: AnyNode) -> None:
        """Take in a node that was just made."""
        if state.obj_id in self.nodes:
            raise ValueError(f"{state.obj_id} exists")
        self._emit("NodeChanged", obj_id=state.obj_id, delta=f"created {state.obj_type}")
        # None: the model was shown nothing of it, so all of it is new.
        self.shown_before[state.obj_id] = None
        self._keep(state)

    def put(self, state: AnyNode, cause: Cause) -> None:
        """Set a node's new state: the one place where nodes change.

        An event follows if its digest did.
        """
        self._require_open()
        before = self.nodes[state.obj_id]
        # Before the node is replaced: a digest is looked up by its id.
        was = self.digest(state.obj_id)
        self._keep(state)
        if (
            state.evolve(last_tick_turn=before.last_tick_turn, last_tick_at=before.last_tick_at)
            == before
        ):
            # Spares the digest of a text that is the same.
            self._digests[state.obj_id] = (state, was)
            return
        if self.digest(state.obj_id) == was:
            return
        # The first state since the last projection stays: the model was shown that one.
        self.shown_before.setdefault(state.obj_id, before)
        delta = describe_change(before, state, self.name) or "no visible change"
        if cause in (Cause.CALL, Cause.PAYLOAD):
            self._emit("NodeChanged", obj_id=state.obj_id, delta=delta)
        elif cause in (Cause.RECOMPUTE, Cause.ASLEEP):
            self._emit("GroupRecomputed", group_id=state.obj_id, delta=delta)
        else:
            self._emit("TickApplied", obj_id=state.obj_id, tick_kind=cause.value, delta=delta)

    @contextmanager
    def method(
        self, obj_id: str, method: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Iterator[EventWish]:
        """Record one call on a node, with its digests before and after.

        A call that raises leaves no event.
        """
        at = len(self.events)
        before = self.digest(obj_id) if obj_id in self.nodes else ""
        wish = EventWish()
        yield wish
        if not wish.wanted:
            return
        fields = {
            "turn": self.turn,
            "obj_id": obj_id,
            "obj_type": self.nodes[obj_id].obj_type,
            "method": method,
            "args": tuple(_short(a) for a in args),
            "kwargs": {k: _short(v) for k, v in kwargs.items()},
            "before_digest": before,
            "after_digest": self.digest(obj_id),
        }
        # Before the changes that the call made, since it is their cause.
        self.events.insert(at, PendingEvent(type="MethodCalled", fields=fields))

    @contextmanager
    def payload(self, obj_id: str, meta: dict[str, Any]) -> Iterator[None]:
        """Record what a prepared update changes in its node; one that changes nothing leaves no
        event.
        """
        at, was, before = len(self.events), self.digest(obj_id), self.nodes[obj_id]
        yield
        if self.digest(obj_id) == was:
            return
        delta = describe_change(before, self.nodes[obj_id], self.name) or "no visible change"
        fields = {"turn": self.turn, "obj_id": obj_id, "payload_meta": meta}
        # Here, too, the cause stands before what it changed.
        self.events.insert(at, PendingEvent(type="AsyncPayloadPrepared", fields=fields))
        self._emit("AsyncPayloadApplied", obj_id=obj_id, payload_meta=meta, delta=delta)

    def _emit(self, type_: str, **fields: Any) -> None:
        self.events.append(PendingEvent(type=type_, fields={"turn": self.turn} | fields))

    def digest(self, obj_id: str) -> str:
        """The digest of a node's state."""
        state = self.nodes[obj_id]
        cached = self._digests.get(obj_id)
        # By the object itself: states never change in place.
        if cached is None or cached[0] is not state:
            cached = self._digests[obj_id] = (state, state.digest())
        return cached[1]

    def last_shown(self, obj_id: str) -> RenderedView | None:
        """The rendering a node had at the last projection, if it existed then."""
        # Without an entry nothing has changed since the last projection.
        state = self.shown_before.get(obj_id, self.nodes.get(obj_id))
        return None if state is None else state.rendering

    def name(self, obj_id: str) -> str:
        """The variable's name for a node, or its ``obj_id``."""
        return self.names.get(obj_id, obj_id)

    def snapshot(self) -> Snapshot:
        """What ``restore`` goes back to."""
        return Snapshot(
            dict(self.nodes),
            self.counter,
            dict(self.names),
            dict(self.shown_before),
            self.changed,
            dict(self.recorded),
            tuple(self.events),
            tuple(self.waits),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Undo everything since ``snapshot``."""
        self.fill(snapshot.nodes)
        self.counter = snapshot.counter
        self.names = dict(snapshot.names)
        self.shown_before = dict(snapshot.shown_before)
        self.changed = snapshot.changed
        self.recorded = dict(snapshot.recorded)
        self.events = list(snapshot.events)
        self.waits = list(snapshot.waits)


def _short(value: Any) -> str:
    """An argument as an event keeps it: a handle by its id, anything else as a capped repr."""
    if isinstance(value, NodeRef):
        return value.obj_id
    text = as_literal(value)
    return text if len(text) <= REPR_LIMIT else text[: REPR_LIMIT - 1] + "…"
