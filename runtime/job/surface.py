"""Which nodes the prompt shows, and where (docs/contract/executable-context.md sections 5.3 and 8,
docs/design.md section 5).

A group is the default surface: its members are shown by it, and on their own only if pinned. A view
outside any group is shown where the statement that made it stands, as it is now, as long as a
variable holds it; once that statement has been condensed away, it is shown in the tail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from runtime.base.fences import label
from runtime.base.values import Value
from runtime.context.describe import listed
from runtime.context.feed import Delta, Item, compressed
from runtime.context.graph import ContextGraph
from runtime.context.handles import same_names
from runtime.context.index import number_of
from runtime.context.states import AnyNode, GroupState, ViewState
from runtime.history.content import NodePart
from runtime.history.events import ShownEvent, is_result
from runtime.job.places import Placed, Places
from runtime.projection.project import Changes, TailPart
from runtime.projection.segments import SegmentKind

SHOWN_DELTAS = 40
"""Deltas that one prompt shows; the rest is counted in a line."""

SHOWN_GROUPS = 5
"""Groups that a mark names, of those that show its view."""

HANDLES_TITLE = "[handles]"

_SHOWS_AGAIN = frozenset(
    {
        "SetLod",
        "SetTokens",
        "SetPos",
        "Scroll",
        "Refresh",
        "Run",
        "Add",
        "Remove",
        "SetText",
        "Append",
        "pin",
    }
)


@dataclass(frozen=True)
class _Facts:
    """Of a group, what decides which nodes it shows."""

    members: tuple[str, ...]
    shows: bool


class SavedSurface(Value):
    """What a checkpoint has of a surface.

    ``changed`` is of nodes whose changes the prompt tells.
    """

    collapsed: tuple[str, ...] = ()
    node_budgets: dict[str, int] = {}
    changed: dict[str, tuple[str, int]] = {}


@dataclass
class Surface:
    """The graph as the projection sees it.

    ``names`` are the variables that hold handles. ``collapsed`` are nodes left out for room and
    ``shrunk`` smaller budgets of nodes, both until the node is called again; ``tail_budgets`` bound
    the delta feed and the handle table of this turn. ``places`` are the views that have a place
    among the events, in its order.

    What is known of nodes is kept from prompt to prompt; ``look`` brings it up to date where
    something changed.
    """

    graph: ContextGraph
    count: Callable[[str], int]
    at: Places
    names: Mapping[str, str] = field(default_factory=dict)
    collapsed: dict[str, None] = field(default_factory=dict)
    shrunk: dict[str, int] = field(default_factory=dict)
    tail_budgets: dict[SegmentKind, int] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    _clock: int = 0
    _events: list[ShownEvent] = field(default_factory=list)
    _named: Mapping[str, str] = field(default_factory=dict)
    _held_as: dict[str, str] = field(default_factory=dict)
    _groups: dict[str, _Facts] = field(default_factory=dict)
    _shown_by: dict[str, list[str]] = field(default_factory=dict)
    _called: set[str] = field(default_factory=set)
    _to_place: set[str] = field(default_factory=set)
    _rendered: dict[str, tuple[AnyNode, str, int | None, Placed]] = field(default_factory=dict)
    _in_tail: dict[str, TailPart | None] = field(default_factory=dict)
    _changed: dict[str, tuple[str, int]] = field(default_factory=dict)

    # The rest is looked up in the graph, the events and the interpreter's names.
    MADE_ANEW: ClassVar[frozenset[str]] = frozenset(
        {
            "graph",
            "count",
            "at",
            "names",
            "tail_budgets",
            "places",
            "_clock",
            "_events",
            "_named",
            "_held_as",
        }
        | {"_groups", "_shown_by", "_called", "_to_place", "_rendered", "_in_tail"}
    )

    def saved(self) -> SavedSurface:
        """For a checkpoint."""
        return SavedSurface(
            collapsed=tuple(self.collapsed), node_budgets=self.shrunk, changed=self._changed
        )

    def restore(self, saved: SavedSurface) -> None:
        """As it was saved."""
        self.collapsed = dict.fromkeys(saved.collapsed)
        self.shrunk = dict(saved.node_budgets)
        self._changed = dict(saved.changed)

    def called(self, obj_id: str, method: str) -> None:
        """The model asked something of the node: it is shown again, in full."""
        if method in _SHOWS_AGAIN and (obj_id in self.collapsed or obj_id in self.shrunk):
            self.collapsed.pop(obj_id, None)
            self.shrunk.pop(obj_id, None)
            self._called.add(obj_id)

    def collapse(self, obj_id: str) -> None:
        """Leave the node out for room."""
        self.collapsed[obj_id] = None
        self._called.add(obj_id)

    def shrink(self, obj_id: str, tokens: int) -> None:
        """Show the node within a smaller budget."""
        self.shrunk[obj_id] = tokens
        self._called.add(obj_id)

    def look(self, events: Sequence[ShownEvent], turn: int) -> None:
        """Learn what this projection goes by: which views have a place among the events, and which
        groups show which nodes.
        """
        changed = set(self.graph.touched_since(self._clock)) | self._called
        self._clock = self.graph.clock
        self._called.clear()
        renamed = self._learn_names()
        changed |= renamed | self._find_places(events)
        changed |= self._learn_groups(renamed)
        self._to_place |= changed
        for obj_id in changed:
            self._sort_in(obj_id, turn)

    def to_place(self) -> set[str]:
        """The nodes for which ``current`` may be another than when this was asked last."""
        taken, self._to_place = self._to_place | self._called, set()
        return taken

    def _learn_names(self) -> set[str]:
        """The nodes that have another name than before."""
        if same_names(self.names, self._named):
            return set()
        before, self._named = self._held_as, self.names
        # Reversed, so that of several names the first one bound wins.
        self._held_as = {obj_id: name for name, obj_id in reversed(list(self.names.items()))}
        renamed = {obj_id for obj_id, _ in self._held_as.items() ^ before.items()}
        # A group's header names its members.
        return renamed | {
            group for group, facts in self._groups.items() if not renamed.isdisjoint(facts.members)
        }

    def _find_places(self, events: Sequence[ShownEvent]) -> set[str]:
        """The views that have a place and had none, or the other way round."""
        known = len(self._events)
        before = self.places
        # Something was forgotten or condensed: places are numbered from the first event again.
        if events[:known] != self._events:
            known, self._events, self.places = 0, [], {}
        new = events[known:]
        self._events.extend(new)
        parts = (part for event in new if is_result(event) for part in event.content)
        placed = [part.obj_id for part in parts if isinstance(part, NodePart)]
        for obj_id in placed:
            self.places.setdefault(obj_id, len(self.places))
        return set(placed) if before is self.places else before.keys() ^ self.places.keys()

    def _learn_groups(self, renamed: set[str]) -> set[str]:
        """The nodes that other groups show than before, or groups with another name."""
        groups: dict[str, _Facts] = {}
        for obj_id in self.graph.groups:
            state = self.graph.state(obj_id)
            if isinstance(state, GroupState):
                groups[obj_id] = _Facts(
                    state.members, obj_id in self._held_as or state.pinned is not None
                )
        if groups == self._groups and renamed.isdisjoint(groups):
            return set()
        before, self._groups, self._shown_by = self._shown_by, groups, {}
        waiting = [obj_id for obj_id, facts in groups.items() if facts.shows]
        seen = set(waiting)
        for group in waiting:
            for member in groups[group].members:
                self._shown_by.setdefault(member, []).append(group)
                if member in groups and member not in seen:
                    seen.add(member)
                    waiting.append(member)
        now = self._shown_by
        changed = {
            obj_id for obj_id in before.keys() | now.keys() if before.get(obj_id) != now.get(obj_id)
        }
        return changed | {
            member for group in renamed & groups.keys() for member in groups[group].members
        }

    def _sort_in(self, obj_id: str, turn: int) -> None:
        """Learn when a node last changed, and whether it is shown in the tail."""
        self._in_tail.pop(obj_id, None)
        if not self.graph.has(obj_id):
            return
        digest = self.graph.digest(obj_id)
        if self._changed.get(obj_id, ("", 0))[0] != digest:
            self._changed[obj_id] = (digest, turn)
        if obj_id not in self.places and self._alone(obj_id):
            self._in_tail[obj_id] = None

    def changes(self) -> Changes:
        """What of the places changed since the layout before."""
        return self.at.changes()

    def in_place(self, obj_id: str) -> str | None:
        """The text at the view's place; None for a mark: it is shown by a group, left out for room,
        or held by nobody.
        """
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
        # States are frozen: the same object gives the same text.
        if made is None or made[0] is not state or made[1:3] != (name, budget):
            text = self.graph.render(obj_id, tokens=budget)
            placed = Placed(shown=True, text=text, first_line=state.rendering.first_line)
            made = self._rendered[obj_id] = (state, name, budget, placed)
        return made[3]

    def is_pinned(self, obj_id: str) -> bool:
        """Whether the node is pinned."""
        return self.graph.state(obj_id).pinned is not None

    def _mark(self, obj_id: str) -> str:
        name = self.name(obj_id)
        state = self.graph.state(obj_id)
        what = f"{name}: view of {label(state.path)}" if isinstance(state, ViewState) else name
        if groups := self._shown_by.get(obj_id):
            return f"[{what}; summarised by {listed(list(map(self.name, groups)), SHOWN_GROUPS)}]"
        if obj_id not in self._held_as:
            return f"[{what}; no variable holds it]"
        return (
            f"[{what}; left out for room: {name}.Refresh() brings it back, show({name}) prints it"
            " once]"
        )

    def tail(self, deltas: Sequence[Delta], budget_line: str) -> tuple[TailPart, ...]:
        """The prompt's tail: nodes by age of their last change, pinned ones first, then deltas,
        handles, budgets.
        """
        parts = [self._in_tail[obj_id] or self._tail_part(obj_id) for obj_id in self._tail_nodes()]
        if missing := self._left_out():
            named = first_names(missing, self.count, self.tail_budgets.get(SegmentKind.HANDLES))
            line = f"[left out for room: {named}; Refresh() brings one back, show() prints it once]"
            parts.insert(0, TailPart(SegmentKind.MARK, "tail", line))
        if deltas:
            parts.append(self._feed(deltas))
        table = self.graph.handle_table(self._named, self.tail_budgets.get(SegmentKind.HANDLES))
        if table.lines:
            lines, last = (HANDLES_TITLE, *table.lines), table.lines[-1]
            # A line's tokens end with it, so those of the text are theirs together.
            tokens = self.count(HANDLES_TITLE + "\n") + sum(table.tokens[:-1]) + self.count(last)
            parts.append(TailPart(SegmentKind.HANDLES, "tail", "\n".join(lines), tokens))
        parts.append(TailPart(SegmentKind.BUDGET, "tail", budget_line))
        return tuple(parts)

    def _left_out(self) -> list[str]:
        """The nodes without a place that are left out for room: in their tail nothing else would
        tell of them.
        """
        gone = [o for o in self.collapsed if o not in self.places and self.graph.has(o)]
        return [
            self.name(o)
            for o in gone
            if self.is_pinned(o) or (o in self._held_as and o not in self._shown_by)
        ]

    def _tail_part(self, obj_id: str) -> TailPart:
        budget = self.shrunk.get(obj_id)
        text = self.graph.render(obj_id, tokens=budget)
        part = TailPart(SegmentKind(self.graph.state(obj_id).obj_type), f"node:{obj_id}", text)
        if budget is None:
            # Within a smaller budget a group tells of its members as they are now.
            self._in_tail[obj_id] = part
        return part

    def _feed(self, deltas: Sequence[Delta]) -> TailPart:
        """The deltas within their budget."""
        told = self.at.told_this_turn
        # What a message of this turn tells in full is not told twice.
        briefly = [replace(delta, detail="") if delta.obj_id in told else delta for delta in deltas]
        items = [Item(delta, self._rank(delta), self._group_of(delta)) for delta in briefly]
        lines = compressed(
            items, self.tail_budgets.get(SegmentKind.DELTA), SHOWN_DELTAS, self.count
        )
        return TailPart(
            SegmentKind.DELTA, "tail", "\n".join(["[changed since the last turn]", *lines])
        )

    def _rank(self, delta: Delta) -> int:
        """What is not about a node, and what is pinned or cannot be read, gives way last."""
        if not self.graph.has(delta.obj_id):
            return 0
        state = self.graph.state(delta.obj_id)
        return (
            1
            if state.pinned is not None
            or (isinstance(state, ViewState) and state.fault is not None)
            else 2
        )

    def _group_of(self, delta: Delta) -> str | None:
        return next(map(self.name, self._shown_by.get(delta.obj_id, ())), None)

    def _tail_nodes(self) -> list[str]:
        def age(obj_id: str) -> tuple[bool, int, int]:
            return not self.is_pinned(obj_id), self._changed[obj_id][1], number_of(obj_id)

        return sorted(self._in_tail, key=age)

    def _alone(self, obj_id: str) -> bool:
        """Whether the node is shown on its own."""
        if obj_id in self.collapsed:
            return False
        return self.is_pinned(obj_id) or (obj_id in self._held_as and obj_id not in self._shown_by)

    def name(self, obj_id: str) -> str:
        """The variable that holds the node, or the node's id."""
        name = self._held_as.get(obj_id)
        if name is not None and self.names.get(name) == obj_id:
            return name
        return next((name for name, held in self.names.items() if held == obj_id), obj_id)


def first_names(names: Sequence[str], count: Callable[[str], int], budget: int | None) -> str:
    """The first of ``names``, within ``budget`` tokens (None: no bound) and ``SHOWN_DELTAS``, and
    how many there are more.
    """
    shown = min(len(names), SHOWN_DELTAS)
    while shown > 0 and budget is not None and count(", ".join(names[:shown])) > budget:
        shown //= 2
    return listed(names, shown)
