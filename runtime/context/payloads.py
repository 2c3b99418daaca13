"""Async updates in two phases: prepared in the background, applied at a tick
(docs/contract/executable-context.md section 6.2).

A background activity never touches a node: what it found comes back as an ``UpdatePayload``, which
waits in the ``ReadyQueue``. At a tick, before sync and periodic ticks, those whose basis is still
the node's are applied, in the order of their arrival; of several for the same ``(obj_id, kind)``
the newest alone, in the place of the oldest, so that a node which is prepared all the time pushes
nobody back. No more than ``PER_TURN`` are applied at one tick; the others keep their place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import Field

from runtime.base.digests import digest_of
from runtime.base.effect_numbers import UNWRITTEN, prepared_effect
from runtime.context import groups, views
from runtime.context.calls import apply_reading
from runtime.context.holding import in_sight
from runtime.context.index import creation_order
from runtime.context.material import Material
from runtime.context.sources import (
    ReadRequest,
    ReadResult,
    ReadStatus,
    note_after_failure,
    of_workspace,
)
from runtime.context.states import AnyNode, ContextValue, FreqKind, GroupState, ViewState
from runtime.context.store import Cause, NodeStore

PER_TURN = 8
"""Payloads that one tick applies."""

AT_A_TIME = 16
"""Preparations of one job that may run at a time."""


class PayloadKind(StrEnum):
    """What a payload updates. Views' readings are ``RENDER``."""

    DIFF = "diff"
    RENDER = "render"
    PARSE = "parse"
    INDEX = "index"
    OTHER = "other"


class Basis(ContextValue):
    """What a payload was prepared from: digests of the node, of its policy, and of what it depends
    on; and the version of the job's own workspace that was read, where one was.

    The version is told, and decides nothing: a payload that was read of another version is the
    node's as long as the job changed nothing that the node shows.
    """

    obj_digest: str
    policy_hash: str
    deps_hash: str
    # What was archived before it was told has none.
    version: str = Field(default="", exclude_if=lambda version: not version)

    def is_still(self, now: Basis) -> bool:
        """Whether the node is what it was: its basis ``now`` differs in no more than the
        version.
        """
        return self.evolve(version="") == now.evolve(version="")


class Cost(ContextValue):
    """What a preparation took: milliseconds of workflow time, bytes of data as JSON."""

    time_ms: int = 0
    bytes: int = 0


class Preparation(ContextValue):
    """Background work that was begun for a node: ``request`` is to be read, or ``material`` to be
    summed up.

    ``number`` counts a job's preparations from 1.
    """

    number: int
    turn: int
    obj_id: str
    kind: PayloadKind
    basis: Basis
    request: ReadRequest
    material: Material | None = None
    begun_at: float

    @property
    def payload_id(self) -> str:
        """The id of the payload that comes of it."""
        return f"payload-{self.number}"

    @property
    def effect(self) -> int:
        """The number under which the archive has what it read."""
        return prepared_effect(self.number)

    def payload(self, result: ReadResult, now: float) -> UpdatePayload:
        """The payload, from what was read."""
        data = result.model_dump(mode="json")
        effect = UNWRITTEN if result.status is ReadStatus.UNWRITTEN else self.effect
        return UpdatePayload(
            payload_id=self.payload_id,
            obj_id=self.obj_id,
            prepared_at=now,
            basis=self.basis,
            kind=self.kind,
            data=data,
            cost=Cost(
                time_ms=round((now - self.begun_at) * 1000), bytes=len(result.model_dump_json())
            ),
            payload_hash=digest_of(data),
            source=(self.turn, effect),
        )


class UpdatePayload(ContextValue):
    """An update that waits for a tick.

    ``data`` is a ``ReadResult`` as JSON, bounded as any reading is.

    ``prepared_at`` is workflow time in seconds; ``source`` is the turn and the number under which
    the archive has the data, ``UNWRITTEN`` where there is none.
    """

    payload_id: str
    obj_id: str
    prepared_at: float
    basis: Basis
    kind: PayloadKind
    data: dict[str, Any]
    cost: Cost
    payload_hash: str
    source: tuple[int, int]

    @property
    def key(self) -> tuple[str, PayloadKind]:
        """Payloads of one key are alternatives: the newest counts."""
        return self.obj_id, self.kind

    @property
    def meta(self) -> dict[str, Any]:
        """What events say of it: all but its data."""
        return self.model_dump(mode="json", exclude={"data", "obj_id"})


class Applied(ContextValue):
    """A payload that changed its node: whose it was, and where the archive has its data."""

    obj_id: str
    turn: int
    effect: int


class Tally(ContextValue):
    """What became of a job's payloads: applied, or dropped as ``stale`` or ``superseded``;
    ``failed`` never came to be one.
    """

    applied: int = 0
    stale: int = 0
    superseded: int = 0
    failed: int = 0


def basis_of(store: NodeStore, state: AnyNode, version: str = "") -> Basis:
    """What a payload prepared now would be prepared from; ``version`` is that of the job's own
    workspace, if it has one.
    """
    if isinstance(state, GroupState):
        deps: Any = [member.digest for member in groups.seen_now(store, state)]
    elif isinstance(state, ViewState):
        deps = [state.path, state.rendering.fingerprint]
    else:
        deps = []
    position = state.pos if isinstance(state, ViewState) else ""
    return Basis(
        obj_digest=store.digest(state.obj_id),
        policy_hash=digest_of([state.lod, state.base_lod, state.tokens, position]),
        deps_hash=digest_of(deps),
        version=version if isinstance(state, ViewState) and of_workspace(state.path) else "",
    )


def holds(store: NodeStore, obj_id: str, basis: Basis) -> bool:
    """Whether a payload with this basis may still be applied: the node wants it, somebody sees it,
    and it is what it was.
    """
    state = store.nodes.get(obj_id)
    if state is None or not (_runs_async(state) or state.awaits_summary):
        return False
    return basis.is_still(basis_of(store, state)) and obj_id in in_sight(store)


def _runs_async(state: AnyNode) -> bool:
    """Whether its readings are prepared.

    A group's members are: it is recomputed from them, in no time.
    """
    return isinstance(state, ViewState) and state.runs(FreqKind.ASYNC)


def request_for(state: AnyNode) -> ReadRequest:
    """What a payload for the node is made by."""
    if isinstance(state, GroupState):
        return groups.request_for(state)
    if not isinstance(state, ViewState):
        raise TypeError(f"{state.obj_id} is a {state.obj_type}, for which nothing is prepared")
    return views.request_for(state)


@dataclass
class ReadyQueue:
    """Payloads in the order of their arrival, and what became of those before."""

    waiting: list[UpdatePayload] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    per_turn: int = PER_TURN

    def count(self, **more: int) -> None:
        """Add to the tally."""
        self.tally = self.tally.evolve(
            **{name: getattr(self.tally, name) + n for name, n in more.items()}
        )

    def take(
        self, current: Callable[[UpdatePayload], bool], apply: Callable[[UpdatePayload], None]
    ) -> None:
        """Apply what a tick may apply; ``current`` says whether a payload's basis still is the
        node's.

        It is asked twice: before the newest of a key is chosen, and again when that one's turn has
        come, since applying one payload may take the basis of another away.
        """
        fresh = [payload for payload in self.waiting if current(payload)]
        newest = {payload.key: payload for payload in fresh}
        self.count(stale=len(self.waiting) - len(fresh), superseded=len(fresh) - len(newest))
        # In the place of the oldest: a dict keeps where a key came first.
        self.waiting = list(newest.values())
        done = 0
        while self.waiting and done < self.per_turn:
            payload = self.waiting.pop(0)
            # Asked again: a payload before this one may have changed what it was made from.
            if not current(payload):
                self.count(stale=1)
                continue
            apply(payload)
            self.count(applied=1)
            done += 1


def apply(store: NodeStore, payload: UpdatePayload) -> bool:
    """Put a payload's reading into its view, or the summary into its group, or that there is none.

    Whether that changed anything.
    """
    before = store.digest(payload.obj_id)
    state = store.nodes[payload.obj_id]
    result = ReadResult.model_validate(payload.data)
    with store.payload(payload.obj_id, payload.meta):
        if result.status is ReadStatus.UNWRITTEN:
            rendering = state.rendering.evolve(note=note_after_failure(state.rendering.note))
            store.put(state.evolve(rendering=rendering), Cause.PAYLOAD)
        elif isinstance(state, GroupState):
            store.put(groups.with_written(store, state, result), Cause.PAYLOAD)
        else:
            view = store.view(payload.obj_id)
            changed = apply_reading(store, view, views.request_for(view), result, Cause.PAYLOAD)
            # It counts as a tick of its node: throttles run from one application to the next.
            store.put(changed.ticked(store.turn, store.now), Cause.PAYLOAD)
    return store.digest(payload.obj_id) != before


def to_prepare(
    store: NodeStore, busy: Iterable[str], asleep: Collection[str] | None = None
) -> list[AnyNode]:
    """The nodes whose next payload may be prepared, but those of ``busy``: those that waited
    longest first.

    They are async views, and the views and groups whose summaries are to be written. What is begun
    in one turn is applied in the next at the earliest, and the throttle counts turns between two
    applications. While a job sleeps no turns pass, and only nodes of ``asleep`` are prepared.
    """
    known = creation_order(
        ({*store.index.running, *store.index.awaiting} - frozenset(busy)) & in_sight(store)
    )
    states = (store.nodes[obj_id] for obj_id in known if asleep is None or obj_id in asleep)

    def due(state: AnyNode) -> bool:
        if state.awaits_summary:
            return not isinstance(state, GroupState) or groups.is_ripe(
                store, state, asleep=asleep is not None
            )
        return _runs_async(state) and (asleep is not None or state.throttle_allows(store.turn + 1))

    return sorted(filter(due, states), key=lambda state: state.last_tick_turn)
