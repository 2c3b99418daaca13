"""Building the layout of one prompt: contract, the View's events with views in place, then the tail
(docs/design.md section 7).

Segments of events never change once made, so they are made once and kept; so is the layout in front
of the tail, in which only the places of nodes that changed are rendered anew. What a turn costs
grows with what changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Protocol

from runtime.base.fences import fenced
from runtime.history.content import Content, NodePart
from runtime.history.events import (
    ActionEvent,
    CondensationSummaryEvent,
    MessageEvent,
    MessageSource,
    ObservationEvent,
    ShownEvent,
    is_result,
)
from runtime.projection.segments import Role, Segment, SegmentKind

MESSAGE_TOKENS = 4
"""What a segment is taken to cost beside its text: the provider's framing of messages."""

SUMMARY_HEAD = "[what went before, summed up]"

_KINDS = {
    MessageSource.SYSTEM: SegmentKind.CONTRACT,
    MessageSource.GOAL: SegmentKind.GOAL,
    MessageSource.USER: SegmentKind.MESSAGE,
    MessageSource.FRAMEWORK: SegmentKind.RESULT,
    MessageSource.AGENT: SegmentKind.REPLY,
}


@dataclass(frozen=True)
class Changes:
    """What became different at the places of nodes: those whose text ``moved``, and whether
    messages were ``superseded``.
    """

    moved: frozenset[str] = frozenset()
    superseded: bool = False


class Nodes(Protocol):
    """What the projection needs of the context graph."""

    def in_place(self, obj_id: str) -> str | None:
        """The node's text where the statement that made it stands; None if it is shown elsewhere or
        not at all.
        """
        ...

    def mark(self, obj_id: str) -> str:
        """One line that says where the node is shown instead."""
        ...

    def superseded(self, event_id: str) -> bool:
        """Whether what a message told of a node stands at the node's place by now."""
        ...

    def changes(self) -> Changes:
        """What of the above changed since this was asked last."""
        ...


@dataclass(frozen=True)
class Slot:
    """A place in an event's segments where a live node is rendered."""

    obj_id: str
    role: Role
    tool_call_id: str | None


@dataclass(frozen=True)
class TailPart:
    """One segment of the tail. ``tokens`` is its count, if it is known already."""

    kind: SegmentKind
    origin: str
    text: str
    tokens: int | None = None


@dataclass(frozen=True)
class Standing:
    """The segments in front of the tail by their sizes: ``ends`` are the tokens up to the end of
    each.

    ``places`` and ``spans`` are the positions of nodes, and of events' first segments and those
    behind their last ones.
    """

    ends: Sequence[int]
    places: Mapping[str, Sequence[tuple[int, Slot]]]
    spans: Mapping[str, tuple[int, int]]

    def behind(self, obj_id: str) -> int:
        """Tokens from the node's first place to the end; 0 if it has none."""
        places = self.places.get(obj_id)
        return self._upto(len(self.ends)) - self._upto(places[0][0]) if places else 0

    def size_of(self, event_id: str) -> int:
        """Tokens of an event's segments; 0 if it has none."""
        start, stop = self.spans.get(event_id, (0, 0))
        return self._upto(stop) - self._upto(start)

    def _upto(self, position: int) -> int:
        return self.ends[position - 1] if position else 0


@dataclass
class Projector:
    """Makes layouts.

    ``count`` is the job's pinned token counter, ``tokens`` what the last layout counts (see
    ``tokens_of``).

    Of the layout before, all stands that the events and nodes have left as it was: the work is in
    what changed, and a copy.
    """

    count: Callable[[str], int]
    tokens: int = 0
    _events: list[ShownEvent] = field(default_factory=list)
    _segments: list[Segment] = field(default_factory=list)
    _size: int = 0
    _spoken: set[str] = field(default_factory=set)
    _places: dict[str, list[tuple[int, Slot]]] = field(default_factory=dict)
    _spans: dict[str, tuple[int, int]] = field(default_factory=dict)
    _ends: list[int] = field(default_factory=list)
    _nodes: Nodes | None = None
    _made: dict[str, tuple[Segment | Slot, ...]] = field(default_factory=dict)
    _slots: dict[Slot, Segment] = field(default_factory=dict)
    _tail: dict[TailPart, Segment] = field(default_factory=dict)

    def layout(
        self,
        events: Sequence[ShownEvent],
        replies: Mapping[int, Segment],
        nodes: Nodes,
        tail: Sequence[TailPart],
    ) -> tuple[Segment, ...]:
        """The prompt's segments, in order.

        ``replies`` are the segments of the model's replies, by turn.
        """
        self._follow(events, replies, nodes)
        made = {part: self._tail.get(part) or self._tail_segment(part) for part in tail}
        self._tail = made or self._tail
        last = [made[part] for part in tail]
        self.tokens = self._size + tokens_of(last)
        return (*self._segments, *last)

    def standing(
        self, events: Sequence[ShownEvent], replies: Mapping[int, Segment], nodes: Nodes
    ) -> Standing:
        """Where things stand in front of the tail, and how much is behind them."""
        self._follow(events, replies, nodes)
        if len(self._ends) < len(self._segments):
            start = self._ends[-1] if self._ends else 0
            sizes = (
                segment.tokens + MESSAGE_TOKENS for segment in self._segments[len(self._ends) :]
            )
            self._ends.extend(list(accumulate(sizes, initial=start))[1:])
        return Standing(self._ends, self._places, self._spans)

    def _follow(
        self, events: Sequence[ShownEvent], replies: Mapping[int, Segment], nodes: Nodes
    ) -> None:
        """Bring the segments in front of the tail up to date."""
        changes, known = nodes.changes(), len(self._events)
        # Something in front is gone: positions of all that stands behind it are others.
        if nodes is not self._nodes or changes.superseded or events[:known] != self._events:
            self._nodes, known = nodes, 0
            self._begin(events)
        # Where all was begun anew, all places are rendered anew with it.
        for obj_id in changes.moved if known else ():
            for position, slot in self._places.get(obj_id, ()):
                placed = self._placed(slot, nodes)
                self._size += placed.tokens - self._segments[position].tokens
                self._segments[position] = placed
                # Sums behind a place that changed its size are no longer right.
                del self._ends[position:]
        for event in events[known:]:
            self._add(event, replies, nodes)

    def _begin(self, events: Iterable[ShownEvent]) -> None:
        """Begin anew, with the segments of those events that are still there."""
        self._made = {event.id: self._made[event.id] for event in events if event.id in self._made}
        self._events, self._segments, self._size = [], [], 0
        self._spoken, self._places, self._spans, self._ends = set(), {}, {}, []

    def _add(self, event: ShownEvent, replies: Mapping[int, Segment], nodes: Nodes) -> None:
        """Append an event's segments."""
        start = len(self._segments)
        self._events.append(event)
        reply = _reply(event)
        if nodes.superseded(event.id):
            return
        if reply is not None:
            turn, response = reply
            # Several actions of one reply are one segment.
            if response not in self._spoken:
                self._spoken.add(response)
                self._segments.append(replies[turn])
        else:
            for part in self._parts(event):
                if isinstance(part, Slot):
                    self._places.setdefault(part.obj_id, []).append((len(self._segments), part))
                    part = self._placed(part, nodes)
                self._segments.append(part)
        self._spans[event.id] = (start, len(self._segments))
        self._size += tokens_of(self._segments[start:])

    def told(self, event: ShownEvent, replies: Mapping[int, Segment]) -> tuple[Segment, ...]:
        """The segments that an event has of its own: all but the live nodes that stand in it."""
        reply = _reply(event)
        if reply is not None:
            return (replies[reply[0]],)
        return tuple(part for part in self._parts(event) if isinstance(part, Segment))

    def _parts(self, event: ShownEvent) -> tuple[Segment | Slot, ...]:
        made = self._made.get(event.id)
        if made is None:
            made = self._made[event.id] = tuple(self._event_parts(event))
        return made

    def _event_parts(self, event: ShownEvent) -> Iterable[Segment | Slot]:
        origin = f"event:{event.id}"
        if isinstance(event, CondensationSummaryEvent):
            yield self._segment(
                SegmentKind.SUMMARY, origin, Role.USER, f"{SUMMARY_HEAD}\n{fenced(event.summary)}"
            )
            return
        if isinstance(event, MessageEvent):
            role = Role.SYSTEM if event.source is MessageSource.SYSTEM else Role.USER
            kind, call, content = _KINDS[event.source], None, event.content
            origin = "contract" if event.source is MessageSource.SYSTEM else origin
        elif is_result(event):
            call = event.tool_call_id
            role = Role.TOOL if call is not None else Role.USER
            kind = SegmentKind.RESULT if isinstance(event, ObservationEvent) else SegmentKind.ERROR
            content = event.content
        else:
            return
        yield from self._content(content, kind, origin, role, call)

    def _content(
        self, content: Content, kind: SegmentKind, origin: str, role: Role, call: str | None
    ) -> Iterable[Segment | Slot]:
        for part in content:
            if isinstance(part, NodePart):
                yield Slot(part.obj_id, role, call)
            else:
                yield self._segment(kind, origin, role, part.text, call)

    def _placed(self, slot: Slot, nodes: Nodes) -> Segment:
        text = nodes.in_place(slot.obj_id)
        kind = SegmentKind.MARK if text is None else SegmentKind.VIEW
        text = nodes.mark(slot.obj_id) if text is None else text
        before = self._slots.get(slot)
        # The very same segment, which knows its digest already.
        if before is not None and before.text == text and before.kind is kind:
            return before
        made = self._slots[slot] = self._segment(
            kind, f"node:{slot.obj_id}", slot.role, text, slot.tool_call_id
        )
        return made

    def _tail_segment(self, part: TailPart) -> Segment:
        return self._segment(
            part.kind, part.origin, Role.USER, part.text, tokens=part.tokens, tail=True
        )

    def _segment(
        self,
        kind: SegmentKind,
        origin: str,
        role: Role,
        text: str,
        tool_call_id: str | None = None,
        *,
        tokens: int | None = None,
        tail: bool = False,
    ) -> Segment:
        return Segment(
            kind=kind,
            origin=origin,
            role=role,
            text=text,
            tokens=self.count(text) if tokens is None else tokens,
            tool_call_id=tool_call_id,
            tail=tail,
        )


def _reply(event: ShownEvent) -> tuple[int, str] | None:
    """The turn and the response of an event that a model's reply made."""
    if isinstance(event, ActionEvent):
        return event.turn, event.llm_response_id
    if isinstance(event, MessageEvent) and event.source is MessageSource.AGENT:
        return event.turn, f"turn-{event.turn}"
    return None


def tokens_of(layout: Iterable[Segment]) -> int:
    """What a layout counts: its segments' tokens and the framing of messages."""
    return sum(segment.tokens + MESSAGE_TOKENS for segment in layout)
