"""Segments: the ordered parts of one prompt, and the delta that makes a prompt from the one before.

A prompt is a *layout*: a tuple of segments. What a turn adds to the workflow's history is a
``LayoutDelta``: the segments that are new, and which stretches of the previous layout stay
(docs/design.md sections 3 and 7). The reply of the turn before is never sent again: the archive
holds it, and ``Reply`` stands for the segment that ``reply_segment`` makes of it, the same in the
workflow and in the activity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from functools import cached_property
from itertools import compress
from operator import attrgetter, is_not
from typing import Annotated, Any, Literal

from pydantic import Field, field_serializer, field_validator

from runtime.base.digests import digest_of
from runtime.base.values import Compact, ToolCall


class Role(StrEnum):
    """Who speaks in the message that a segment is part of."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class SegmentKind(StrEnum):
    """What a segment is; docs/design.md section 7 gives the order in which kinds stand in a
    prompt.
    """

    CONTRACT = "contract"
    GOAL = "goal"
    MESSAGE = "message"
    SUMMARY = "summary"
    REPLY = "reply"
    RESULT = "result"
    ERROR = "error"
    VIEW = "view"
    MARK = "mark"
    GROUP = "group"
    NOTE = "note"
    DELTA = "delta"
    HANDLES = "handles"
    BUDGET = "budget"
    INSTRUCTION = "instruction"


class Segment(Compact):
    """One part of a prompt: what it is, where it came from, and its text.

    ``origin`` names the event (``event:ID``), statement (``statement:N``), node (``node:ID``), or
    ``contract`` or ``tail``. A segment of the ``tail`` stands behind all that later prompts keep.
    ``tokens`` counts ``text`` with the encoding that was pinned when the job started.
    """

    kind: SegmentKind
    origin: str
    role: Role
    text: str
    tokens: int
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    thinking: tuple[dict[str, Any], ...] = ()
    tail: bool = False

    @cached_property
    def digest(self) -> str:
        """Digest of the segment's canonical JSON, without fields that have their default."""
        return digest_of(self.model_dump(mode="json", exclude_defaults=True))


class Keep(Compact):
    """Segments ``start`` to ``stop`` (exclusive) of the previous layout."""

    op: Literal["keep"] = "keep"
    start: int = Field(ge=0)
    stop: int


class Add(Compact):
    """A segment that the previous layout did not have."""

    op: Literal["add"] = "add"
    segment: Segment


class Reply(Compact):
    """The segment that ``reply_segment`` makes of the previous turn's reply."""

    op: Literal["reply"] = "reply"


DeltaPart = Annotated[Keep | Add | Reply, Field(discriminator="op")]


class LayoutDelta(Compact):
    """How to make a layout from the one before. The first turn has only ``Add`` parts."""

    parts: tuple[DeltaPart, ...]

    @property
    def added_texts(self) -> tuple[str, ...]:
        """The texts of the new segments."""
        return tuple(part.segment.text for part in self.parts if isinstance(part, Add))

    @field_serializer("parts", when_used="json")
    def _brief_parts(self, parts: tuple[DeltaPart, ...]) -> list[Any]:
        """Short, since every turn's history holds one: ``[start, stop]``, ``"reply"``, or a
        segment.
        """
        return [_brief(part) for part in parts]

    @field_validator("parts", mode="before")
    @classmethod
    def _full_parts(cls, parts: Any) -> Any:
        return [_full(part) for part in parts] if isinstance(parts, list | tuple) else parts

    def apply(self, previous: Sequence[Segment], reply: Segment | None) -> tuple[Segment, ...]:
        """The new layout, from the previous one and the segment of the previous turn's reply.

        Raises:
            ValueError: if a part refers to what ``previous`` or ``reply`` does not have.
        """
        layout: list[Segment] = []
        for part in self.parts:
            match part:
                case Keep(start=start, stop=stop):
                    if not start < stop <= len(previous):
                        raise ValueError(
                            f"keep {start}:{stop} of a layout of {len(previous)} segments"
                        )
                    layout.extend(previous[start:stop])
                case Add(segment=segment):
                    layout.append(segment)
                case Reply():
                    if reply is None:
                        raise ValueError("the delta refers to a reply, and there is none")
                    layout.append(reply)
        return tuple(layout)


_TOLD: dict[str, dict[str, Any]] = {
    SegmentKind.BUDGET: {"origin": "tail", "role": "user", "tail": True}
}
"""What the kind of a segment tells of it, for a kind that every turn has."""


_DIGEST = attrgetter("digest")


def _brief(part: DeltaPart) -> list[int] | str | dict[str, Any]:
    match part:
        case Keep(start=start, stop=stop):
            return [start, stop]
        case Add(segment=segment):
            told = _TOLD.get(segment.kind, {})
            short = segment.model_dump(mode="json")
            return (
                {k: v for k, v in short.items() if k not in told}
                if told.items() <= short.items()
                else short
            )
        case Reply():
            return part.op


def _full(part: Any) -> Any:
    match part:
        case [start, stop]:
            return {"op": "keep", "start": start, "stop": stop}
        case "reply":
            return {"op": "reply"}
        case {"kind": kind}:
            return {
                "op": "add",
                "segment": part if "origin" in part else {**_TOLD.get(kind, {}), **part},
            }
        case _:
            return part


def delta_between(
    previous: Sequence[Segment], reply: Segment | None, layout: Sequence[Segment]
) -> LayoutDelta:
    """The delta that makes ``layout`` from ``previous``, keeping every stretch that is
    unchanged.
    """
    return delta_from(digests_of(previous), reply, layout)


def digests_of(layout: Iterable[Segment]) -> tuple[str, ...]:
    """The digests of a layout's segments."""
    return tuple(map(_DIGEST, layout))


class Digests:
    """Of one layout after the other, each of which has most of the segments of the one before: only
    those that are new are asked for theirs.
    """

    def __init__(self) -> None:
        self._layout: tuple[Segment, ...] = ()
        self._known: tuple[str, ...] = ()

    def of(self, layout: tuple[Segment, ...]) -> tuple[str, ...]:
        """``digests_of``."""
        most = min(len(self._layout), len(layout))
        # The same one, not an equal one: 1 and 1.0 are equal, and their digests are not.
        same = next(compress(range(most), map(is_not, self._layout, layout)), most)
        self._known = (*self._known[:same], *digests_of(layout[same:]))
        self._layout = layout
        return self._known


def delta_from(
    previous: Sequence[str],
    reply: Segment | None,
    layout: Sequence[Segment],
    digests: tuple[str, ...] | None = None,
) -> LayoutDelta:
    """``delta_between``, from the digests of the previous layout's segments alone; with those of
    this one's, if they are known.
    """
    parts: list[Keep | Add | Reply] = []
    reply_digest = reply.digest if reply is not None else None
    old, new = tuple(previous), digests_of(layout) if digests is None else digests
    head = common(old, new)
    # Both ends first: most prompts differ in the middle alone, and the matcher is slow.
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    if head:
        parts.append(Keep(start=0, stop=head))
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    # By default difflib passes over what is frequent among 200 items or more.
    matcher = SequenceMatcher(None, middle_old, middle_new, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            parts.append(Keep(start=head + i1, stop=head + i2))
            continue
        for j in range(head + j1, head + j2):
            parts.append(Reply() if new[j] == reply_digest else Add(segment=layout[j]))
    if tail:
        parts.append(Keep(start=len(old) - tail, stop=len(old)))
    return LayoutDelta(parts=tuple(parts))


def common(old: Sequence[object], new: Sequence[object]) -> int:
    """How many items the two, of one type, begin with in common.

    Stretches are compared as wholes: that is quick where they are the same.
    """
    low, high = 0, min(len(old), len(new))
    if old[:high] == new[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if old[low:middle] == new[low:middle] else (low, middle)
    return low


def reply_segment(
    *,
    turn: int,
    text: str,
    tool_calls: Sequence[ToolCall],
    thinking: Sequence[dict[str, Any]],
    tokens: int,
) -> Segment:
    """The segment by which a turn's reply stands in later prompts, exactly as the model gave it."""
    return Segment(
        kind=SegmentKind.REPLY,
        origin=f"statement:{turn}",
        role=Role.ASSISTANT,
        text=text,
        tokens=tokens,
        tool_calls=tuple(tool_calls),
        thinking=tuple(thinking),
    )


def thought_of(block: Mapping[str, Any]) -> str:
    """The readable text of a thinking block, or of a reasoning item's summary."""
    summary = block.get("summary")
    parts = summary if isinstance(summary, list) else ()
    texts = (str(part.get("text", "")) for part in parts if isinstance(part, dict))
    return "".join((str(block.get("thinking", "")), *texts))
