"""Layouts that are made from the one before, their bytes and their digests."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import pairwise
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.archive.layouts import Layout, layout_of
from runtime.base.digests import digest_of
from runtime.projection.segments import Role, Segment, SegmentKind, delta_between


def segment(text: str, *, tail: bool = False) -> Segment:
    """A segment of a user's."""
    kind = SegmentKind.BUDGET if tail else SegmentKind.MESSAGE
    return Segment(
        kind=kind, origin=f"event:{text}", role=Role.USER, text=text, tokens=ord(text[0]), tail=tail
    )


def followed(layouts: list[list[Segment]]) -> list[Layout]:
    """Each made from the one before."""
    made = [Layout.empty()]
    for before, after in pairwise([[], *layouts]):
        made.append(made[-1].changed(delta_between(before, None, after), None))
    return made[1:]


SEGMENTS = st.builds(segment, st.sampled_from("abcdef"), tail=st.booleans())


@given(st.lists(st.lists(SEGMENTS, max_size=6), max_size=6))
def test_a_layout_is_the_same_however_it_came_about(layouts: list[list[Segment]]) -> None:
    """Its digest is that of its segments' digests, its document the same as that of one read."""
    for wanted, made in zip(layouts, followed(layouts), strict=True):
        assert list(made.segments) == wanted
        assert made.digest == digest_of([each.digest for each in wanted])
        assert layout_of(made.document) == made
        assert made.tokens == layout_of(made.document).tokens == sum(s.tokens for s in wanted)
        assert made.document == b"".join(line + b"\n" for line in made.lines)


def calls_of_last(turns: int) -> Counter[str]:
    """The calls of Python functions by which the last of so many turns makes its layout."""
    layouts = [
        [*(segment(str(n)) for n in range(turn + 1)), segment(f"left {turn}", tail=True)]
        for turn in range(turns)
    ]
    before = followed(layouts[:-1])[-1]
    _ = before.digest, before.tokens, [each.digest for each in layouts[-1]]
    delta = delta_between(layouts[-2], None, layouts[-1])
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            calls[frame.f_code.co_name] += 1

    sys.setprofile(note)
    try:
        after = before.changed(delta, None)
        _ = after.digest, after.document, after.tokens
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.slow
def test_the_work_on_a_layout_is_that_on_what_is_new() -> None:
    """At turn 300 as at turn 10."""
    assert calls_of_last(300) == calls_of_last(10)
