"""Which nodes the prompt shows, and where (executable-context.md sections 5.3 and 8, DESIGN.md section 5).

A group is the default surface: its members are shown by it, and on their own only if pinned. A view outside any group is
shown where the statement that made it stands, as it is now, as long as a variable holds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from runtime.context.feed import Delta
from runtime.context.graph import ContextGraph
from runtime.context.states import GroupState, ViewState
from runtime.projection.project import TailPart
from runtime.projection.segments import SegmentKind

SHOWN_DELTAS = 40
"""Deltas that one prompt shows; the rest is counted in a line."""


@dataclass
class Surface:
    """The graph as the projection sees it. ``collapsed`` are views left out for room, until they are asked for again."""

    graph: ContextGraph
    names: Mapping[str, str] = field(default_factory=dict)
    collapsed: dict[str, None] = field(default_factory=dict)
    shrunk: dict[str, int] = field(default_factory=dict)
    _changed: dict[str, tuple[str, int]] = field(default_factory=dict)

    def in_place(self, obj_id: str) -> str | None:
        """The view's text, or None if it is shown by a group, left out for room, or held by nobody."""
        state = self.graph.state(obj_id)
        if obj_id in self.collapsed:
            return None
        if state.pinned is None and (self._groups_of(obj_id) or obj_id not in self.names.values()):
            return None
        return self.graph.render(obj_id, tokens=self.shrunk.get(obj_id))

    def mark(self, obj_id: str) -> str:
        """Why the view is not shown here, and what would show it."""
        name = self._name(obj_id)
        state = self.graph.state(obj_id)
        what = f"{name}: view of {state.path}" if isinstance(state, ViewState) else name
        if obj_id in self.collapsed:
            return f"[{what}; left out for room: show({name}) prints it]"
        if groups := self._groups_of(obj_id):
            return f"[{what}; summarised by {', '.join(map(self._name, groups))}]"
        return f"[{what}; no variable holds it]"

    def tail(self, deltas: tuple[Delta, ...], turn: int, budget_line: str) -> tuple[TailPart, ...]:
        """The prompt's tail: groups by age of their last change, pinned ones first, then deltas, handles, budgets."""
        parts = [
            TailPart(SegmentKind.GROUP, f"node:{obj_id}", self.graph.render(obj_id, tokens=self.shrunk.get(obj_id)))
            for obj_id in self._groups(turn)
        ]
        if deltas:
            parts.append(TailPart(SegmentKind.DELTA, "tail", _feed(deltas)))
        if table := self.graph.handle_table(self.names):
            parts.append(TailPart(SegmentKind.HANDLES, "tail", f"[handles]\n{table}"))
        parts.append(TailPart(SegmentKind.BUDGET, "tail", budget_line))
        return tuple(parts)

    def _groups(self, turn: int) -> list[str]:
        held = set(self.names.values())
        shown: list[tuple[bool, int, int, str]] = []
        for order, obj_id in enumerate(self.graph.obj_ids):
            state = self.graph.state(obj_id)
            if not isinstance(state, GroupState):
                continue
            digest = self.graph.digest(obj_id)
            if self._changed.get(obj_id, ("", 0))[0] != digest:
                self._changed[obj_id] = (digest, turn)
            if state.pinned is not None or (obj_id in held and not self._groups_of(obj_id)):
                shown.append((state.pinned is None, self._changed[obj_id][1], order, obj_id))
        return [obj_id for *_, obj_id in sorted(shown)]

    def _groups_of(self, obj_id: str) -> list[str]:
        """The groups that show the node: those that a variable holds or that are themselves in such a group."""
        held = set(self.names.values())
        groups = [
            other
            for other in self.graph.obj_ids
            if isinstance(state := self.graph.state(other), GroupState) and obj_id in state.members
        ]
        return [group for group in groups if group in held or self._groups_of(group)]

    def _name(self, obj_id: str) -> str:
        return next((name for name, held in self.names.items() if held == obj_id), obj_id)


def _feed(deltas: tuple[Delta, ...]) -> str:
    lines = [delta.text() for delta in deltas[:SHOWN_DELTAS]]
    if len(deltas) > SHOWN_DELTAS:
        lines.append(f"{len(deltas) - SHOWN_DELTAS} more changes")
    return "[changed since the last turn]\n" + "\n".join(lines)
