"""What a prompt has in common with the one before, and what finding that costs."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from runtime.projection.prefix import Prefix, prefix_of
from runtime.projection.segments import Role, Segment, SegmentKind


class Looked(Segment):
    """A segment of which each look at it is a call of Python's."""

    def __getattribute__(self, name: str) -> Any:
        return super().__getattribute__(name)


def segment(number: int, *, tail: bool = False) -> Looked:
    """One of ten tokens."""
    return Looked(
        kind=SegmentKind.MESSAGE,
        origin=f"event:{number}",
        role=Role.USER,
        text=f"said {number}",
        tokens=10,
        tail=tail,
    )


def looks(size: int, at: str) -> int:
    """How often a segment is asked for this in a prompt of so many, whose tokens are known."""
    old = tuple(map(segment, range(size)))
    before = (*old, segment(1_000, tail=True), segment(1_001, tail=True))
    new = (segment(2_000), segment(2_001, tail=True))
    asked = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name == "__getattribute__":
            asked.append(frame.f_locals["name"])

    sys.setprofile(note)
    try:
        prefix = prefix_of(before, (*old, *new), 10 * len(before))
    finally:
        sys.setprofile(None)
    assert prefix == Prefix(stable=10 * size, new=10, tail=10, broken=None, lost=0, segments=size)
    assert prefix == prefix_of(before, (*old, *new))
    return asked.count(at)


def test_the_end_of_the_prompt_before_is_looked_at_for_its_tail() -> None:
    """And nothing in front of that, however long it is."""
    assert looks(400, "tail") == looks(40, "tail")


def test_what_both_prompts_have_is_not_counted() -> None:
    """The tokens of the prompt before are known, and those behind what is stable are few."""
    assert 0 < looks(400, "tokens") == looks(40, "tokens")
