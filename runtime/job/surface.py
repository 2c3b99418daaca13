"""Which nodes the prompt shows, and where (executable-context.md sections 5.3 and 8, DESIGN.md section 5).

A group is the default surface: its members are shown by it, and on their own only if pinned. A view outside any group is
shown where the statement that made it stands, as it is now, as long as a variable holds it; once that statement has been
condensed away, it is shown in the tail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from runtime.context.diffs import fit_lines
from runtime.context.feed import Delta, Item, compressed
from runtime.context.graph import ContextGraph
from runtime.context.states import AnyNode, GroupState, ViewState
from runtime.history.content import NodePart
from runtime.history.events import ShownEvent, is_result
from runtime.job.places import Placed, Places
from runtime.projection.project import TailPart
from runtime.projection.segments import SegmentKind

SHOWN_DELTAS = 40
"""Deltas that one prompt shows; the rest is counted in a line."""

MOST_CHARS = 12
"""Characters that a token of the tail's lists stands for at most: what is longer by this is not even counted."""

_SHOWS_AGAIN = frozenset(
    {"SetLod", "SetTokens", "SetPos", "Scroll", "Refresh", "Run", "Add", "Remove", "SetText", "Append", "pin"}
)


@dataclass
class Surface:
    """The graph as the projection sees it.

    ``names`` are the variables that hold handles. ``collapsed`` are nodes left out for room and ``shrunk`` smaller budgets of
    nodes, both until the node is called again; ``tail_budgets`` bound the delta feed and the handle table of this turn.
    """

    graph: ContextGraph
    count: Callable[[str], int]
    at: Places
    names: Mapping[str, str] = field(default_factory=dict)
    collapsed: dict[str, None] = field(default_factory=dict)
    shrunk: dict[str, int] = field(default_factory=dict)
    tail_budgets: dict[SegmentKind, int] = field(default_factory=dict)
    places: tuple[str, ...] = ()
    _held: frozenset[str] = frozenset()
    _placed_here: frozenset[str] = frozenset()
    _rendered: dict[str, tuple[AnyNode, str, int | None, Placed]] = field(default_factory=dict)
    _held_as: dict[str, str] = field(default_factory=dict)
    _shown_by: dict[str, list[str]] = field(default_factory=dict)
    _changed: dict[str, tuple[str, int]] = field(default_factory=dict)

    def called(self, obj_id: str, method: str) -> None:
        """The model asked something of the node: it is shown again, in full."""
        if method in _SHOWS_AGAIN:
            self.collapsed.pop(obj_id, None)
            self.shrunk.pop(obj_id, None)

    def look(self, events: Iterable[ShownEvent]) -> None:
        """Learn what this projection goes by: which views have a place among the events, and which groups show which nodes."""
        parts = (part for event in events if is_result(event) for part in event.content)
        self.places = tuple(dict.fromkeys(part.obj_id for part in parts if isinstance(part, NodePart)))
        self._placed_here = frozenset(self.places)
        self._held = frozenset(self.names.values())
        self._held_as = {obj_id: name for name, obj_id in reversed(list(self.names.items()))}
        states = ((obj_id, self.graph.state(obj_id)) for obj_id in self.graph.obj_ids)
        groups = {obj_id: state for obj_id, state in states if isinstance(state, GroupState)}
        self._shown_by = {}
        waiting = [obj_id for obj_id, state in groups.items() if obj_id in self._held or state.pinned is not None]
        seen = set(waiting)
        for group in waiting:
            for member in groups[group].members:
                self._shown_by.setdefault(member, []).append(group)
                if member in groups and member not in seen:
                    seen.add(member)
                    waiting.append(member)

    def in_place(self, obj_id: str) -> str | None:
        """The text at the view's place; None for a mark: it is shown by a group, left out for room, or held by nobody."""
        placed = self._placed(obj_id)
        return placed.text if placed.shown else None

    def mark(self, obj_id: str) -> str:
        """Why the view is not shown at its place, and what would show it."""
        return self._placed(obj_id).text

    def superseded(self, event_id: str) -> bool:
        """Whether what a message told of a view stands at the view's place by now."""
        return event_id in self.at.dropped

    def _placed(self, obj_id: str) -> Placed:
        return self.at.at(obj_id) or self.current(obj_id)

    def current(self, obj_id: str) -> Placed:
        """What would stand at the view's place if it were rendered now."""
        if not self._alone(obj_id):
            return Placed(shown=False, text=self._mark(obj_id))
        state, name, budget = self.graph.state(obj_id), self.name(obj_id), self.shrunk.get(obj_id)
        made = self._rendered.get(obj_id)
        if made is None or made[0] is not state or made[1:3] != (name, budget):
            text = self.graph.render(obj_id, tokens=budget)
            placed = Placed(shown=True, text=text, first_line=state.rendering.first_line)
            made = self._rendered[obj_id] = (state, name, budget, placed)
        return made[3]

    def _mark(self, obj_id: str) -> str:
        name = self.name(obj_id)
        state = self.graph.state(obj_id)
        what = f"{name}: view of {state.path}" if isinstance(state, ViewState) else name
        if groups := self._shown_by.get(obj_id):
            return f"[{what}; summarised by {', '.join(map(self.name, groups))}]"
        if obj_id not in self._held:
            return f"[{what}; no variable holds it]"
        return f"[{what}; left out for room: {name}.Refresh() brings it back, show({name}) prints it once]"

    def tail(self, deltas: Sequence[Delta], turn: int, budget_line: str) -> tuple[TailPart, ...]:
        """The prompt's tail: nodes by age of their last change, pinned ones first, then deltas, handles, budgets."""
        parts: list[TailPart] = []
        for obj_id in self._tail_nodes(turn):
            kind = SegmentKind(self.graph.state(obj_id).obj_type)
            text = self.graph.render(obj_id, tokens=self.shrunk.get(obj_id))
            parts.append(TailPart(kind, f"node:{obj_id}", text))
        if deltas:
            parts.append(self._feed(deltas))
        if table := self.graph.handle_table(self.names):
            parts.append(self._list(SegmentKind.HANDLES, "[handles]", table.splitlines()))
        parts.append(TailPart(SegmentKind.BUDGET, "tail", budget_line))
        return tuple(parts)

    def _feed(self, deltas: Sequence[Delta]) -> TailPart:
        """The deltas within their budget."""
        told = self.at.told_now
        # What a message of this turn tells in full is not told twice.
        briefly = [replace(delta, detail="") if delta.obj_id in told else delta for delta in deltas]
        items = [Item(delta, self._rank(delta), self._group_of(delta)) for delta in briefly]
        lines = compressed(items, self.tail_budgets.get(SegmentKind.DELTA), SHOWN_DELTAS, self.count)
        return TailPart(SegmentKind.DELTA, "tail", "\n".join(["[changed since the last turn]", *lines]))

    def _rank(self, delta: Delta) -> int:
        """What is not about a node, and what is pinned or cannot be read, gives way last."""
        if delta.obj_id not in self.graph.obj_ids:
            return 0
        state = self.graph.state(delta.obj_id)
        return 1 if state.pinned is not None or (isinstance(state, ViewState) and state.fault is not None) else 2

    def _group_of(self, delta: Delta) -> str | None:
        return next(map(self.name, self._shown_by.get(delta.obj_id, ())), None)

    def _list(self, kind: SegmentKind, title: str, lines: Sequence[str]) -> TailPart:
        budget = self.tail_budgets.get(kind)
        if budget is not None:
            kept = fit_lines(_beginning(lines, budget * MOST_CHARS), budget, self.count)
            more = len(lines) - len(kept)
            lines = [*kept, f"... {more} more lines were left out for room"] if more else kept
        return TailPart(kind, "tail", "\n".join([title, *lines]))

    def _tail_nodes(self, turn: int) -> list[str]:
        shown: list[tuple[bool, int, int, str]] = []
        for order, obj_id in enumerate(self.graph.obj_ids):
            state = self.graph.state(obj_id)
            digest = self.graph.digest(obj_id)
            if self._changed.get(obj_id, ("", 0))[0] != digest:
                self._changed[obj_id] = (digest, turn)
            if obj_id not in self._placed_here and self._alone(obj_id):
                shown.append((state.pinned is None, self._changed[obj_id][1], order, obj_id))
        return [obj_id for *_, obj_id in sorted(shown)]

    def _alone(self, obj_id: str) -> bool:
        """Whether the node is shown on its own."""
        if self.graph.state(obj_id).pinned is not None:
            return True
        return obj_id not in self.collapsed and obj_id in self._held and obj_id not in self._shown_by

    def name(self, obj_id: str) -> str:
        """The variable that holds the node, or the node's id."""
        name = self._held_as.get(obj_id)
        if name is not None and self.names.get(name) == obj_id:
            return name
        return next((name for name, held in self.names.items() if held == obj_id), obj_id)


def _beginning(lines: Sequence[str], chars: int) -> Sequence[str]:
    """The first lines, up to so many characters."""
    for number, line in enumerate(lines):
        chars -= len(line)
        if chars < 0:
            return lines[:number]
    return lines
