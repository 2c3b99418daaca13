"""Which nodes anybody can still see, and what becomes of the others.

A node is in sight if a variable holds it (itself, or in a list, tuple or dict), if it is pinned, or
if it is a member of a group that is in sight. A running node out of sight would be read in every
turn for nobody: it is paused when the statement that let go of it has ended. It is not dropped: a
handle may live on where nobody looks for it, in a closure or deep in a structure, and ``Run`` sets
its node going again. What was being prepared for it in the background is cancelled.
"""

from __future__ import annotations

from runtime.context.index import creation_order
from runtime.context.states import GroupState, Mode
from runtime.context.store import Cause, NodeStore


def in_sight(store: NodeStore) -> frozenset[str]:
    """The nodes in sight since the last statement ended; all of them before the first did."""
    if store.held is None:
        return frozenset(store.nodes)
    seen = {obj_id for obj_id in (*store.held, *store.index.pinned) if obj_id in store.nodes}
    waiting = [obj_id for obj_id in store.index.groups if obj_id in seen]
    # The list grows while it is walked: members of members are reached, too.
    for obj_id in waiting:
        state = store.nodes[obj_id]
        for member in state.members if isinstance(state, GroupState) else ():
            if member not in seen:
                seen.add(member)
                waiting.append(member)
    return frozenset(seen)


def pause_out_of_sight(store: NodeStore) -> None:
    """Pause every running node that is not in sight."""
    if not store.index.running:
        return
    seen = in_sight(store)
    for obj_id in creation_order(store.index.running.keys() - seen):
        store.put(store.nodes[obj_id].evolve(mode=Mode.PAUSED), Cause.CALL)
