"""The tick: which sources are due, and what their readings change
(docs/contract/executable-context.md sections 5.2 and 6.1).

Order: sync ticks, periodic ticks that are due, then due groups, members before the groups that
contain them; nodes in creation order. A view that was set to show something else is read with the
sync ticks, whether it runs or not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from runtime.context import details, groups, views
from runtime.context.calls import apply_reading
from runtime.context.index import creation_order
from runtime.context.sources import ReadRequest, ReadResult, ReadStatus
from runtime.context.states import NEVER, FreqKind, Mode, ViewState
from runtime.context.store import Cause, NodeStore


def due(
    store: NodeStore, turn: int, now: float, also: frozenset[str] = frozenset()
) -> tuple[ReadRequest, ...]:
    """The reads of the tick of ``turn`` at ``now``: of sync ticks and of ``also``, of periodic
    ones, then those for groups.
    """
    index = store.index
    nodes = (
        store.nodes[obj_id] for obj_id in creation_order((*index.asked, *index.running, *also))
    )
    states = [state for state in nodes if isinstance(state, ViewState)]
    # What the model asked for does not wait for an interval.
    asked = {s.obj_id for s in states if s.dirty.explicit or s.obj_id in also}
    sync = [
        s for s in states if s.obj_id in asked or (s.runs(FreqKind.SYNC) and s.is_due(turn, now))
    ]
    periodic = [
        s
        for s in states
        if s.obj_id not in asked and s.runs(FreqKind.PERIODIC) and s.is_due(turn, now)
    ]
    reads = tuple(views.request_for(state) for state in (*sync, *periodic))
    return (*reads, *details.due(store, {request.obj_id for request in reads}))


def apply(
    store: NodeStore,
    results: Sequence[ReadResult],
    also: frozenset[str] = frozenset(),
    cause_of_groups: Cause = Cause.RECOMPUTE,
) -> None:
    """Put the readings into their views and recompute the groups that are due.

    A view whose reading is missing stays due. ``cause_of_groups`` is ``ASLEEP`` at a tick between
    two turns.

    Raises:
        ValueError: if a reading belongs to no view that was due, or two to the same.
    """
    asked = {request.obj_id: request for request in due(store, store.turn, store.now, also)}
    answered = {result.obj_id: result for result in results}
    strangers = answered.keys() - asked.keys()
    if strangers or len(answered) != len(results):
        raise ValueError(
            "readings that the tick did not ask for, or twice:"
            f" {sorted(strangers) or sorted(answered)}"
        )
    for obj_id, request in asked.items():
        if obj_id not in answered:
            continue
        if details.is_detail(obj_id):
            details.take(store, request, answered[obj_id])
            continue
        state = store.view(obj_id)
        cause = (
            Cause.PERIODIC
            if state.runs(FreqKind.PERIODIC) and not state.dirty.explicit
            else Cause.TICK
        )
        changed = apply_reading(store, state, request, answered[obj_id], cause)
        if changed.mode is Mode.RUNNING:
            store.put(changed.ticked(store.turn, store.now), cause)
    recompute(store, cause_of_groups)


def marked(store: NodeStore, requests: Sequence[ReadRequest]) -> bool:
    """Whether a reading changes one of these views also where it has no news."""
    states = (store.nodes.get(request.obj_id) for request in requests)
    return any(
        isinstance(state, ViewState) and (state.dirty.any or state.fault is not None)
        for state in states
    )


def reached(store: NodeStore, due: Sequence[ReadRequest], told: Collection[str]) -> tuple[str, ...]:
    """Of what is ``due``, what the tick of a record has reached: what its events have ``told`` of,
    and what is read in each turn, of which they tell only what can be seen.
    """
    return tuple(
        request.obj_id
        for request in due
        if request.obj_id in told
        or (
            isinstance(state := store.nodes.get(request.obj_id), ViewState)
            and state.runs(FreqKind.SYNC)
            and state.min_turn_interval == 1
        )
    )


def unread(
    store: NodeStore, results: Sequence[ReadResult], ticked: Sequence[str]
) -> tuple[ReadResult, ...]:
    """The readings that a record has not, of what this turn's tick reads once more as it is shown,
    or of the due views that the record's tick has ``ticked``: they brought nothing new, or it would
    have them.

    Of other views it may be that the record's tick did not read them.
    """
    asked = creation_order((*store.index.asked, *ticked))
    return unchanged(store, results, asked)


def unchanged(
    store: NodeStore, results: Sequence[ReadResult], obj_ids: Iterable[str]
) -> tuple[ReadResult, ...]:
    """Readings without news, of those views that are not among ``results``."""
    answered = {result.obj_id for result in results}
    states = (store.nodes[obj_id] for obj_id in obj_ids)
    return tuple(
        ReadResult(
            obj_id=state.obj_id,
            status=ReadStatus.UNCHANGED,
            basis=state.rendering.basis,
            fingerprint=state.rendering.fingerprint,
        )
        for state in states
        if isinstance(state, ViewState)
        and state.obj_id not in answered
        and views.is_shown_as_set(state)
    )


def recompute(store: NodeStore, cause: Cause) -> None:
    """Recompute every group that is due."""
    # All of them: which one is due only its members' digests tell.
    groups.recompute_due(store, creation_order(store.index.groups), cause)


def bring_forward(store: NodeStore) -> None:
    """``tick()`` by the model: at once if nothing has to be read, else all that runs is due at the
    next tick.

    A statement cannot read a whole tick's sources in mid-call, and every turn begins with a tick:
    so what ``tick()`` adds is that throttles and intervals do not hold it back.
    """
    if not due(store, store.turn, store.now):
        recompute(store, Cause.CALL)
    for obj_id in creation_order(store.index.running):
        store.put(store.nodes[obj_id].evolve(last_tick_turn=NEVER, last_tick_at=None), Cause.CALL)
