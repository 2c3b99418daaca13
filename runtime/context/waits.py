"""``wait`` and ``wait_for``: what a job may sleep for, and when a node counts as changed."""

from __future__ import annotations

from collections.abc import Iterable

from runtime.context.index import creation_order
from runtime.context.states import FreqKind, GroupState, Mode, NoteState, ViewState, Wait
from runtime.context.store import NodeStore
from runtime.digests import digest_of

MOST_WAITS = 100
"""Waits that one statement may ask for."""


def views_under(store: NodeStore, roots: Iterable[str]) -> list[str]:
    """The running views among ``roots`` and the members of their running groups, at any depth, in creation order."""
    waiting = list(dict.fromkeys(roots))
    seen = set(waiting)
    for obj_id in waiting:
        state = store.nodes[obj_id]
        for member in state.members if isinstance(state, GroupState) and state.mode is Mode.RUNNING else ():
            if member not in seen:
                seen.add(member)
                waiting.append(member)
    running = creation_order(store.index.running.keys() & seen)
    return [obj_id for obj_id in running if isinstance(store.nodes[obj_id], ViewState)]


def awaited(store: NodeStore, wait: Wait) -> tuple[str, ...]:
    """The nodes whose change ends ``wait``: those that it names, or all that run."""
    if not wait.change:
        return ()
    return wait.nodes or tuple(creation_order(store.index.running))


def can_change(store: NodeStore, obj_id: str) -> bool:
    """Whether the node may change while no statement runs: it is a running view, or a running group that shows one."""
    return bool(views_under(store, [obj_id]))


def signature(store: NodeStore, obj_id: str) -> str:
    """What a node has to show, as a digest: its source's content or why it cannot be read, its members', its text.

    It does not depend on how much of that is shown: what the model sets is no change to wait for.
    """
    state = store.nodes[obj_id]
    if isinstance(state, GroupState):
        return digest_of([signature(store, member) for member in state.members])
    if isinstance(state, NoteState):
        return digest_of(state.rendering.text)
    return digest_of([state.rendering.fingerprint, state.fault])


def next_due(store: NodeStore) -> float:
    """The workflow time at which the next periodic tick of a view is due; infinity if there is none."""
    running = (store.nodes[obj_id] for obj_id in store.index.running)
    times = (s.due_at() for s in running if isinstance(s, ViewState) and s.runs(FreqKind.PERIODIC))
    return min(times, default=float("inf"))
