"""What a turn asks of the nodes, kept as they change: so that it need not look at all of them to
find the few it is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from runtime.context.states import AnyNode, GroupState, Mode, ViewState

# No set: a dict is walked in the order of its making, in every process alike.
Kept = dict[str, None]


class Index:
    """Nodes by what they are at this moment, and the order in which they changed.

    A node that is gone (a statement was taken back) counts as changed, too. Nothing here is part of
    a checkpoint.
    """

    def __init__(self) -> None:
        self.running: Kept = {}
        self.asked: Kept = {}
        self.pinned: Kept = {}
        self.groups: Kept = {}
        self.awaiting: Kept = {}
        self.paths: dict[str, Kept] = {}
        # A count of changes: this room has no other clock.
        self._clock = 0
        self._changes: dict[str, int] = {}

    @property
    def clock(self) -> int:
        """This moment, for ``changed_since``."""
        return self._clock

    def changed_since(self, clock: int) -> list[str]:
        """The nodes that were put or let go after that moment, the last first.

        As long as what has changed.
        """
        changed: list[str] = []
        for obj_id in reversed(self._changes):
            if self._changes[obj_id] <= clock:
                break
            changed.append(obj_id)
        return changed

    def keep(self, state: AnyNode) -> None:
        """Learn a node's new state."""
        obj_id = state.obj_id
        self._changed(obj_id)
        _set(self.running, obj_id, state.mode is Mode.RUNNING)
        _set(self.pinned, obj_id, state.pinned is not None)
        _set(self.groups, obj_id, isinstance(state, GroupState))
        _set(self.awaiting, obj_id, state.awaits_summary)
        if isinstance(state, ViewState):
            _set(self.asked, obj_id, state.dirty.explicit)
            self.paths.setdefault(state.path, {})[obj_id] = None

    def fill(self, before: Mapping[str, AnyNode], after: Mapping[str, AnyNode]) -> None:
        """Learn that all nodes were put in the place of others."""
        for obj_id, state in before.items():
            if obj_id not in after:
                self._forget(state)
        for obj_id, state in after.items():
            if before.get(obj_id) is not state:
                self.keep(state)

    def _forget(self, state: AnyNode) -> None:
        self._changed(state.obj_id)
        for kept in (self.running, self.asked, self.pinned, self.groups, self.awaiting):
            kept.pop(state.obj_id, None)
        if isinstance(state, ViewState):
            self.paths[state.path].pop(state.obj_id, None)

    def _changed(self, obj_id: str) -> None:
        self._clock += 1
        # Taken out first: a dict keeps the place of a key that it has, and the last change must be
        # last.
        self._changes.pop(obj_id, None)
        self._changes[obj_id] = self._clock


def creation_order(obj_ids: Iterable[str]) -> list[str]:
    """The ids, each once, in the order in which their nodes were made: one counter numbers nodes of
    all types.
    """
    return sorted(set(obj_ids), key=number_of)


def number_of(obj_id: str) -> int:
    """How many nodes were made, or failed to be, until this one was."""
    return int(obj_id.rpartition("-")[2])


def _set(kept: Kept, obj_id: str, belongs: bool) -> None:
    if belongs:
        kept[obj_id] = None
    else:
        kept.pop(obj_id, None)
