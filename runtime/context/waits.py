"""``wait`` and ``wait_for``: what a job may sleep for, and when a node counts as changed."""

from __future__ import annotations

from collections.abc import Iterable

from runtime.base.digests import digest_of
from runtime.context import groups
from runtime.context.index import creation_order
from runtime.context.sources import SUMMARY_LOD
from runtime.context.states import AnyNode, FreqKind, GroupState, Mode, NoteState, ViewState, Wait
from runtime.context.store import NodeStore
from runtime.context.sub_jobs import is_sub_job

MOST_WAITS = 100
"""Waits that one statement may ask for."""


def under(store: NodeStore, roots: Iterable[str]) -> list[str]:
    """``roots`` and the members of the running groups among them, at any depth, in creation
    order.
    """
    waiting = list(dict.fromkeys(roots))
    seen = set(waiting)
    for obj_id in waiting:
        state = store.nodes[obj_id]
        for member in (
            state.members if isinstance(state, GroupState) and state.mode is Mode.RUNNING else ()
        ):
            if member not in seen:
                seen.add(member)
                waiting.append(member)
    return creation_order(seen)


def to_look_at(store: NodeStore, roots: Iterable[str]) -> list[str]:
    """The views under ``roots`` that a look at them reads: those that run, but async ones, which
    are prepared instead, and those of sub-jobs, which tell their ends themselves.
    """
    states = (store.nodes[obj_id] for obj_id in under(store, roots))
    return [
        s.obj_id
        for s in states
        if _is_running_view(s) and not s.runs(FreqKind.ASYNC) and not is_sub_job(store, s)
    ]


def unwritten(store: NodeStore, roots: Iterable[str]) -> list[str]:
    """The nodes under ``roots`` for whose summaries something else stands in."""
    return [obj_id for obj_id in under(store, roots) if store.nodes[obj_id].awaits_summary]


def summaries_wanted(store: NodeStore) -> list[str]:
    """All nodes for whose summaries something else stands in."""
    return creation_order(store.index.awaiting)


def awaited(store: NodeStore, wait: Wait) -> tuple[str, ...]:
    """The nodes whose change ends ``wait``: those that it names, or all that may change."""
    if not wait.change:
        return ()
    return wait.nodes or tuple(creation_order((*store.index.running, *store.index.awaiting)))


def can_change(store: NodeStore, obj_id: str) -> bool:
    """Whether the node may change while no statement runs.

    It is a running view, or a running group that shows one; or something stands in for its summary.
    """
    return any(
        _is_running_view(store.nodes[o]) or _will_be_summed_up(store, o)
        for o in under(store, [obj_id])
    )


def _is_running_view(state: AnyNode) -> bool:
    return isinstance(state, ViewState) and state.mode is Mode.RUNNING


def _will_be_summed_up(store: NodeStore, obj_id: str) -> bool:
    state = store.nodes[obj_id]
    # It was set so and is not read yet: the next tick lets something stand in.
    if state.dirty.explicit and state.base_lod == SUMMARY_LOD and store.writer:
        return True
    # A paused group shows its members as they were: once they are others, nobody can sum those up
    # any more.
    stuck = (
        isinstance(state, GroupState)
        and state.mode is Mode.PAUSED
        and not groups.is_ripe(store, state, asleep=True)
    )
    return state.awaits_summary and not stuck


def signature(store: NodeStore, obj_id: str) -> str:
    """What a node has to show, as a digest: its source's content or why it cannot be read, its
    members', its text.

    It does not depend on how much of that is shown: what the model sets is no change to wait for.
    """
    known: dict[str, str] = {}
    for node in groups.inside_out(store, [obj_id]):
        state = store.nodes[node]
        known[node] = (
            digest_of([known[member] for member in state.members])
            if isinstance(state, GroupState)
            else _leaf_signature(store, state)
        )
    return known[obj_id]


def _leaf_signature(store: NodeStore, state: ViewState | NoteState) -> str:
    if isinstance(state, NoteState):
        return digest_of(state.rendering.text)
    if is_sub_job(store, state):
        # Its turns are no change to wait for: its end is.
        return digest_of(["sub-job", store.sub_jobs[state.path]])
    return digest_of([state.rendering.fingerprint, state.fault])


def next_due(store: NodeStore) -> float:
    """The workflow time at which the next periodic tick of a view is due; infinity if there is
    none.
    """
    running = (store.nodes[obj_id] for obj_id in store.index.running)
    times = (s.due_at() for s in running if isinstance(s, ViewState) and s.runs(FreqKind.PERIODIC))
    return min(times, default=float("inf"))


def goes_by_time(store: NodeStore) -> bool:
    """Whether what a tick comes to depends on its time: for a group too, which is not recomputed
    before its interval is over.
    """
    return any(store.nodes[obj_id].runs(FreqKind.PERIODIC) for obj_id in store.index.running)
