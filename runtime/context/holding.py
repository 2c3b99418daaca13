"""Which nodes anybody can still see, and what becomes of the others.

A node is in sight if a variable holds it (itself, or in a list, tuple or dict), if it is pinned, or if it is a member of a
group that is in sight. A running node out of sight would be read in every turn for nobody: it is paused when the statement
that let go of it has ended. It is not dropped: a handle may live on where nobody looks for it, in a closure or deep in a
structure, and ``Run`` sets its node going again.
"""

from __future__ import annotations

from collections.abc import Iterable

from runtime.context.states import GroupState, Mode
from runtime.context.store import Cause, NodeStore


def in_sight(store: NodeStore, held: Iterable[str]) -> frozenset[str]:
    """The nodes in sight when variables hold ``held``."""
    pinned = (obj_id for obj_id, state in store.nodes.items() if state.pinned is not None)
    waiting = [obj_id for obj_id in (*held, *pinned) if obj_id in store.nodes]
    seen = set(waiting)
    for obj_id in waiting:
        state = store.nodes[obj_id]
        for member in state.members if isinstance(state, GroupState) else ():
            if member not in seen:
                seen.add(member)
                waiting.append(member)
    return frozenset(seen)


def pause_out_of_sight(store: NodeStore, held: Iterable[str]) -> None:
    """Pause every running node that is not in sight."""
    seen = in_sight(store, held)
    for obj_id, state in list(store.nodes.items()):
        if state.mode is Mode.RUNNING and obj_id not in seen:
            store.put(state.evolve(mode=Mode.PAUSED), Cause.CALL)
