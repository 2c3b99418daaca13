"""The tick: which sources are due, and what their readings change (executable-context.md sections 5.2 and 6.1).

Order: views in creation order, then due groups, members before the groups that contain them. Payloads and periodic
ticks, which are not built, go before and after the views respectively.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.context import groups, views
from runtime.context.calls import apply_reading
from runtime.context.sources import ReadRequest, ReadResult
from runtime.context.states import NEVER, GroupState, ViewState
from runtime.context.store import Cause, NodeStore


def due(store: NodeStore, turn: int) -> tuple[ReadRequest, ...]:
    """The reads of the tick of ``turn``: views set to show something else, and running ones whose throttle allows it."""
    states = [state for state in store.nodes.values() if isinstance(state, ViewState)]
    return tuple(views.request_for(state) for state in states if _is_due(state, turn))


def _is_due(state: ViewState, turn: int) -> bool:
    return state.dirty.explicit or (state.running_sync and state.throttle_allows(turn))


def apply(store: NodeStore, results: Sequence[ReadResult]) -> None:
    """Put the readings into their views and recompute the groups that are due.

    A view whose reading is missing stays due.

    Raises:
        ValueError: if a reading belongs to no view that was due, or two to the same.
    """
    asked = {request.obj_id: request for request in due(store, store.turn)}
    answered = {result.obj_id: result for result in results}
    strangers = answered.keys() - asked.keys()
    if strangers or len(answered) != len(results):
        raise ValueError(f"readings that the tick did not ask for, or twice: {sorted(strangers) or sorted(answered)}")
    for obj_id, request in asked.items():
        if obj_id not in answered:
            continue
        changed = apply_reading(store, store.view(obj_id), request, answered[obj_id], Cause.TICK)
        if changed.running_sync:
            store.put(changed.evolve(last_tick_turn=store.turn), Cause.TICK)
    recompute(store, Cause.RECOMPUTE)


def recompute(store: NodeStore, cause: Cause) -> None:
    """Recompute every group that is due."""
    groups.recompute_due(store, [s.obj_id for s in store.nodes.values() if isinstance(s, GroupState)], cause)


def bring_forward(store: NodeStore) -> None:
    """``tick()`` by the model: at once if nothing has to be read, else all that runs is due at the next tick.

    A statement cannot read a whole tick's sources in mid-call, and every turn begins with a tick: so what ``tick()`` adds is
    that throttles do not hold it back.
    """
    if not due(store, store.turn):
        recompute(store, Cause.CALL)
    for state in list(store.nodes.values()):
        if state.running_sync:
            store.put(state.evolve(last_tick_turn=NEVER), Cause.CALL)
