"""Marks for a provider's cache: where they stand, how many there are, and that nothing else of a
prompt changes for them.
"""

from __future__ import annotations

from typing import Any

from runtime.base.values import ToolCall
from runtime.projection.messages import Marks, messages_of
from runtime.projection.segments import Role, Segment, SegmentKind, reply_segment


def segment(role: Role, text: str, *, call: str | None = None, tail: bool = False) -> Segment:
    """A segment of a prompt."""
    return Segment(
        kind=SegmentKind.RESULT,
        origin="event:1",
        role=role,
        text=text,
        tokens=1,
        tool_call_id=call,
        tail=tail,
    )


def reply(turn: int) -> Segment:
    """A reply with one call."""
    call = ToolCall(id=f"c{turn}", name="python", arguments='{"code": "1"}')
    return reply_segment(turn=turn, text="", tool_calls=(call,), thinking=(), tokens=1)


HEAD = (segment(Role.SYSTEM, "contract"), segment(Role.USER, "goal"))
TURN = (reply(1), segment(Role.TOOL, "one", call="c1"), segment(Role.TOOL, "view", call="c1"))
LAYOUT = (
    *HEAD,
    *TURN,
    reply(2),
    segment(Role.TOOL, "two", call="c2"),
    segment(Role.USER, "tail", tail=True),
)


def marked(messages: list[dict[str, Any]]) -> list[str]:
    """The texts behind which a mark stands."""
    blocks = [
        block
        for message in messages
        for block in message["content"] or ()
        if isinstance(block, dict)
    ]
    return [block["text"] for block in blocks if "cache_control" in block]


def test_marks_stand_behind_the_system_the_old_prefix_and_all_that_stays() -> None:
    """Never behind the tail, and never more than the provider takes."""
    assert marked(messages_of(LAYOUT, Marks(most=4, stable=5))) == ["contract", "view", "two"]
    assert marked(messages_of(LAYOUT, Marks(most=1, stable=5))) == ["two"]
    assert marked(messages_of(HEAD, Marks(most=4))) == ["contract", "goal"]


def test_a_blocks_text_does_not_depend_on_what_follows_it() -> None:
    """So the tail may go, and the blocks before it are those that the cache knows."""
    with_tail = messages_of((*HEAD, segment(Role.USER, "tail", tail=True)), Marks(most=4))
    without = messages_of(HEAD, Marks(most=4))
    assert with_tail[1]["content"][:1] == without[1]["content"]


def test_without_marks_messages_are_plain_text() -> None:
    """For every other provider a prompt is what it was."""
    assert messages_of(LAYOUT, Marks()) == messages_of(LAYOUT)
    assert messages_of(LAYOUT)[3] == {
        "role": "tool",
        "tool_call_id": "c1",
        "content": "one\n\nview",
    }
