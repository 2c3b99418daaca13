"""Layout deltas: what a turn sends makes exactly the prompt, from the one before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.archive.forms import StoredReply
from runtime.base.values import ToolCall
from runtime.projection.segments import (
    Add,
    Keep,
    LayoutDelta,
    Reply,
    Role,
    Segment,
    SegmentKind,
    delta_between,
    reply_segment,
)

texts = st.sampled_from("abcdefgh")
layouts = st.lists(texts, max_size=12).map(lambda letters: tuple(segment(text) for text in letters))
calls = st.builds(
    ToolCall, id=st.text(max_size=3), name=st.text(max_size=3), arguments=st.text(max_size=5)
)


def segment(text: str) -> Segment:
    """A segment that only its text tells from others."""
    return Segment(kind=SegmentKind.RESULT, origin="event:1", role=Role.USER, text=text, tokens=1)


def a_reply(text: str) -> Segment:
    """A model's reply."""
    return reply_segment(turn=1, text=text, tool_calls=(), thinking=(), tokens=1)


@given(layouts, layouts, st.none() | texts.map(a_reply), st.integers(0, 12))
def test_a_delta_makes_the_layout_it_was_made_for(
    previous: tuple[Segment, ...], layout: tuple[Segment, ...], reply: Segment | None, where: int
) -> None:
    """Through JSON too, and with the reply anywhere in the new layout."""
    if reply is not None:
        layout = (*layout[:where], reply, *layout[where:])
    delta = delta_between(previous, reply, layout)
    assert delta.apply(previous, reply) == layout
    assert LayoutDelta.model_validate_json(delta.model_dump_json()).apply(previous, reply) == layout


@given(layouts, layouts, texts)
def test_a_reply_is_never_sent_again(
    previous: tuple[Segment, ...], layout: tuple[Segment, ...], text: str
) -> None:
    """The archive holds it: no ``Add`` carries its text."""
    delta = delta_between(previous, a_reply(text), (*previous, a_reply(text), *layout))
    assert all(
        part.segment.kind is not SegmentKind.REPLY for part in delta.parts if isinstance(part, Add)
    )


@given(layouts)
def test_an_unchanged_layout_is_one_part(layout: tuple[Segment, ...]) -> None:
    """Its size does not depend on the prompt's."""
    parts = delta_between(layout, None, layout).parts
    assert parts == ((Keep(start=0, stop=len(layout)),) if layout else ())


def test_an_appended_turn_is_kept_reply_and_result() -> None:
    """What a usual turn sends: everything before, the reply, the new result, the new tail."""
    old = (segment("a"), segment("b"), segment("tail 1"))
    reply = a_reply("r")
    new = (segment("a"), segment("b"), reply, segment("c"), segment("tail 2"))
    assert delta_between(old, reply, new).parts == (
        Keep(start=0, stop=2),
        Reply(),
        Add(segment=segment("c")),
        Add(segment=segment("tail 2")),
    )


@given(st.text(), st.lists(calls, max_size=2), st.integers(0, 9), st.integers(0, 9))
def test_the_archives_reply_makes_the_same_segment(
    text: str, made: list[ToolCall], tokens: int, turn: int
) -> None:
    """Workflow and activity each make it from the reply; their layouts must agree to the byte."""
    thinking = ({"type": "thinking", "thinking": text, "signature": "s"},)
    record = StoredReply(text=text, tool_calls=tuple(made), thinking=thinking, tokens=tokens)
    here = reply_segment(turn=turn, text=text, tool_calls=made, thinking=thinking, tokens=tokens)
    again = StoredReply.model_validate_json(record.model_dump_json()).segment(turn)
    assert record.segment(turn) == here == again
    assert again.digest == here.digest
