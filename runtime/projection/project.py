"""Building the layout of one prompt: contract, the View's events with views in place, then the tail (DESIGN.md section 7).

Segments of events never change once made, so they are made once and kept; what a turn costs grows with what changed. Only
the places where live nodes stand, and the tail, are rendered for each prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

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

_KINDS = {
    MessageSource.SYSTEM: SegmentKind.CONTRACT,
    MessageSource.GOAL: SegmentKind.GOAL,
    MessageSource.USER: SegmentKind.MESSAGE,
    MessageSource.FRAMEWORK: SegmentKind.RESULT,
    MessageSource.AGENT: SegmentKind.REPLY,
}


class Nodes(Protocol):
    """What the projection needs of the context graph."""

    def in_place(self, obj_id: str) -> str | None:
        """The node's text where the statement that made it stands; None if it is shown elsewhere or not at all."""
        ...

    def mark(self, obj_id: str) -> str:
        """One line that says where the node is shown instead."""
        ...

    def superseded(self, event_id: str) -> bool:
        """Whether what a message told of a node stands at the node's place by now."""
        ...


@dataclass(frozen=True)
class Slot:
    """A place in an event's segments where a live node is rendered."""

    obj_id: str
    role: Role
    tool_call_id: str | None


@dataclass(frozen=True)
class TailPart:
    """One segment of the tail, before it is counted."""

    kind: SegmentKind
    origin: str
    text: str


@dataclass
class Projector:
    """Makes layouts. ``count`` is the job's pinned token counter."""

    count: Callable[[str], int]
    _made: dict[str, tuple[Segment | Slot, ...]] = field(default_factory=dict)
    _slots: dict[Slot, Segment] = field(default_factory=dict)
    _tail: dict[TailPart, Segment] = field(default_factory=dict)

    def layout(
        self,
        events: Iterable[ShownEvent],
        replies: Mapping[int, Segment],
        nodes: Nodes,
        tail: Sequence[TailPart],
    ) -> tuple[Segment, ...]:
        """The prompt's segments, in order. ``replies`` are the segments of the model's replies, by turn."""
        segments: list[Segment] = []
        spoken: set[str] = set()
        for event in events:
            if nodes.superseded(event.id):
                continue
            reply = _reply(event)
            if reply is not None:
                turn, response = reply
                if response not in spoken:
                    spoken.add(response)
                    segments.append(replies[turn])
                continue
            for part in self._parts(event):
                segments.append(part if isinstance(part, Segment) else self._placed(part, nodes))
        segments.extend(self._tail_segment(part) for part in tail)
        return tuple(segments)

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
            yield self._segment(SegmentKind.SUMMARY, origin, Role.USER, event.summary)
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
        if before is not None and before.text == text and before.kind is kind:
            return before
        made = self._slots[slot] = self._segment(kind, f"node:{slot.obj_id}", slot.role, text, slot.tool_call_id)
        return made

    def _tail_segment(self, part: TailPart) -> Segment:
        made = self._tail.get(part)
        if made is None:
            if len(self._tail) > 512:
                self._tail.clear()
            made = self._tail[part] = self._segment(part.kind, part.origin, Role.USER, part.text, tail=True)
        return made

    def _segment(
        self,
        kind: SegmentKind,
        origin: str,
        role: Role,
        text: str,
        tool_call_id: str | None = None,
        *,
        tail: bool = False,
    ) -> Segment:
        return Segment(
            kind=kind,
            origin=origin,
            role=role,
            text=text,
            tokens=self.count(text),
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
