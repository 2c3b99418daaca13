"""The prompt by which a summary is asked for, as the delta that makes it from the last step's
prompt.
"""

from __future__ import annotations

from collections.abc import Iterable

from runtime.history.condensers import Situation, SummaryForm, SummaryRequest, instruction_of
from runtime.history.condensers.extract import cut
from runtime.history.events import ShownEvent
from runtime.job.desk import Desk
from runtime.projection.segments import (
    Add,
    Keep,
    LayoutDelta,
    Role,
    Segment,
    SegmentKind,
    delta_from,
)
from runtime.projection.transcript import told_text

NOW = "[That was the stretch. Write its summary now.]"
LEAST_ROOM = 256


def summary_delta(desk: Desk, request: SummaryRequest, situation: Situation) -> LayoutDelta:
    """The prompt, from the last step's: what that has already is not said again.

    In the agent's prefix form it is the last prompt and the instruction; else the instruction and
    the events' segments. The events' segments stay as they were shown; only where one unit alone is
    beyond the window do they lose their middles.
    """
    origin = f"condensation:{request.condensation_id}"

    def instruct(text: str, role: Role) -> Segment:
        return Segment(
            kind=SegmentKind.INSTRUCTION,
            origin=origin,
            role=role,
            text=text,
            tokens=desk.count(text),
        )

    instruction = instruction_of(request)
    # The last prompt is in the provider's cache, so this form pays for little but the instruction.
    if request.form is SummaryForm.AGENT_PREFIX:
        return LayoutDelta(
            parts=(
                Keep(start=0, stop=len(desk.shown)),
                Add(segment=instruct(instruction, Role.USER)),
            )
        )
    wanted = set(request.event_ids)
    told = _told(desk, (event for event in desk.log.view if event.id in wanted))
    room = max(
        # Four fifths: the provider's count of tokens is not ours.
        situation.window * 4 // 5 - desk.count(instruction) - request.max_summary_tokens,
        LEAST_ROOM,
    )
    layout = (
        instruct(instruction, Role.SYSTEM),
        *_within(desk, told, room),
        instruct(NOW, Role.USER),
    )
    return delta_from(desk.shown, desk.replies.get(desk.turn - 1), layout)


def _told(desk: Desk, events: Iterable[ShownEvent]) -> list[Segment]:
    """What the events say. Actions of one reply are told once."""
    segments: dict[str, Segment] = {}
    for event in events:
        for number, segment in enumerate(desk.projector.told(event, desk.replies)):
            key = segment.origin if segment.kind is SegmentKind.REPLY else f"{event.id}/{number}"
            segments.setdefault(key, segment)
    return list(segments.values())


def _within(desk: Desk, told: list[Segment], room: int) -> list[Segment]:
    total = sum(segment.tokens for segment in told)
    if total <= room:
        return told
    share = max(room // len(told), 8)
    return [segment if segment.tokens <= share else _cut(desk, segment, share) for segment in told]


def _cut(desk: Desk, segment: Segment, tokens: int) -> Segment:
    """The segment as a piece of a transcript, without its middle."""
    text = told_text(segment).partition("\n")[2] if segment.tool_calls else segment.text
    text = cut(text, len(text) * tokens // max(segment.tokens, 1))
    return Segment(
        kind=segment.kind,
        origin=segment.origin,
        role=segment.role,
        text=text,
        tokens=desk.count(text),
    )
