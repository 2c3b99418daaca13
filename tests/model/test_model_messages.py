"""A layout as a provider's messages: joined, ordered, and free of what providers refuse."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.base.values import ToolCall
from runtime.projection.messages import (
    NO_RESULT,
    NO_TEXT,
    Marks,
    Told,
    copied,
    messages_of,
    told,
    tools_of,
)
from runtime.projection.segments import Role, Segment, SegmentKind, reply_segment

THINKING: tuple[dict[str, object], ...] = (
    {"type": "thinking", "thinking": "Hm.", "signature": "s1"},
    {"type": "redacted_thinking", "data": "x"},
)


def segment(role: Role, text: str, *, call: str | None = None) -> Segment:
    return Segment(
        kind=SegmentKind.MESSAGE,
        origin="event:1",
        role=role,
        text=text,
        tokens=1,
        tool_call_id=call,
    )


def reply(
    text: str = "", *calls: ToolCall, thinking: tuple[dict[str, object], ...] = ()
) -> Segment:
    return reply_segment(turn=1, text=text, tool_calls=calls, thinking=thinking, tokens=1)


def call(id: str = "c1", arguments: str = '{"code": "x"}', name: str = "python") -> ToolCall:
    return ToolCall(id=id, name=name, arguments=arguments)


def native(
    id: str = "c1", arguments: str = '{"code": "x"}', name: str = "python"
) -> dict[str, object]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_a_layout_becomes_messages() -> None:
    """System segments are one message, users' stretches one each, replies and results stand as
    given.
    """
    layout = [
        segment(Role.SYSTEM, "You are A."),
        segment(Role.SYSTEM, "Contract."),
        segment(Role.USER, "Goal."),
        segment(Role.USER, "View."),
        reply("Looking.", call(), thinking=THINKING),
        segment(Role.TOOL, "out", call="c1"),
        segment(Role.TOOL, "more", call="c1"),
        segment(Role.USER, "Budget."),
    ]
    assert messages_of(layout) == [
        {"role": "system", "content": "You are A.\n\nContract."},
        {"role": "user", "content": "Goal.\n\nView."},
        {
            "role": "assistant",
            "content": "Looking.",
            "thinking_blocks": list(THINKING),
            "tool_calls": [native()],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "out\n\nmore"},
        {"role": "user", "content": "Budget."},
    ]


def test_results_stand_right_after_their_calls() -> None:
    """What lies between a call and its result comes after the result; results are in the calls'
    order.
    """
    layout = [
        reply("", call("a"), call("b")),
        segment(Role.USER, "between"),
        segment(Role.TOOL, "B", call="b"),
        segment(Role.TOOL, "A", call="a"),
    ]
    assert messages_of(layout)[1:] == [
        {"role": "tool", "tool_call_id": "a", "content": "A"},
        {"role": "tool", "tool_call_id": "b", "content": "B"},
        {"role": "user", "content": "between"},
    ]


def test_a_call_without_a_result_gets_one() -> None:
    """A call that nothing answers gets a result that says so, also at the end of the prompt."""
    assert messages_of([reply("", call()), reply("", call("c2"))]) == [
        {"role": "assistant", "content": None, "tool_calls": [native()]},
        {"role": "tool", "tool_call_id": "c1", "content": NO_RESULT},
        {"role": "assistant", "content": None, "tool_calls": [native("c2")]},
        {"role": "tool", "tool_call_id": "c2", "content": NO_RESULT},
    ]


def test_a_result_without_a_call_is_told_as_text() -> None:
    """A result whose call was forgotten is a user's text."""
    assert messages_of([segment(Role.TOOL, "out", call="gone"), segment(Role.USER, "x")]) == [
        {"role": "user", "content": "out\n\nx"}
    ]


def test_an_empty_reply_keeps_its_place() -> None:
    """A reply without text and calls is a message with a placeholder, for providers refuse empty
    ones.
    """
    assert messages_of([segment(Role.USER, "a"), reply(" \n"), segment(Role.USER, "b")]) == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": NO_TEXT},
        {"role": "user", "content": "b"},
    ]


def test_malformed_calls_can_be_sent_back() -> None:
    """Arguments that are no JSON object and names that are none do not make the next prompt
    unsendable.
    """
    message = messages_of([reply("", call(arguments='{"code": "x', name="py thon"))])[0]
    assert message["tool_calls"] == [native("c1", '{"unparsed": "{\\"code\\": \\"x"}', "py_thon")]
    digits = "9" * 5_000
    message = messages_of([reply("", call(arguments=f'{{"code": {digits}}}'))])[0]
    assert message["tool_calls"][0]["function"]["arguments"] == (
        f'{{"unparsed": "{{\\"code\\": {digits}}}"}}'
    )


@pytest.mark.parametrize(
    "wrong",
    [
        *("NaN", "-Infinity", "1e999", "[" * 100_000, "[" * 200 + "]" * 200),
        *(r'"half \uD83d"', r'{"half \ude00": 1}'),
    ],
)
def test_what_others_read_not_as_json_is_sent_back_as_text(wrong: str) -> None:
    """Some providers get the arguments' values: the request was none, or could not be made, and
    the job failed.
    """
    arguments = f'{{"a": {wrong}}}'
    message = messages_of([reply("", call(arguments=arguments))])[0]
    sent = message["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"unparsed": arguments}
    whole = messages_of([reply("", call(arguments=r'{"a": "\ud83d\ude00"}'))])[0]
    assert whole["tool_calls"][0]["function"]["arguments"] == r'{"a": "\ud83d\ude00"}'


def test_the_tool_form_has_one_tool() -> None:
    """The tool form offers `python` with the one argument `code`; the script form offers none."""
    tools = tools_of("tool")
    assert tools is not None
    assert [t["function"]["name"] for t in tools] == ["python"]
    assert list(tools[0]["function"]["parameters"]["properties"]) == ["code"]
    assert tools_of("script") is None


SEGMENTS = st.one_of(
    st.builds(segment, st.sampled_from([Role.SYSTEM, Role.USER]), st.sampled_from(["", "u", "v"])),
    st.builds(
        lambda t, c: segment(Role.TOOL, t, call=c),
        st.sampled_from(["", "t"]),
        st.sampled_from(["a", "b"]),
    ),
    st.builds(
        lambda t, ids: reply(t, *map(call, ids)),
        st.sampled_from(["", "r"]),
        st.lists(st.sampled_from("ab"), unique=True),
    ),
)


@given(st.lists(SEGMENTS, max_size=12))
def test_any_layout_has_the_form_that_providers_demand(layout: list[Segment]) -> None:
    """Every call is answered at once and exactly once, no content is empty, and no two user
    messages meet.
    """
    messages = messages_of(layout)
    wanted: list[str] = []
    for before, message in zip([{"role": ""}, *messages], messages, strict=False):
        if message["role"] == "tool":
            assert message["tool_call_id"] == wanted.pop(0)
        else:
            assert wanted == []
            wanted = [c["id"] for c in message.get("tool_calls", [])]
        assert message["content"] or message["tool_calls"]
        assert not (message["role"] == before["role"] == "user")
    assert wanted == []


@given(st.lists(SEGMENTS, max_size=14), st.data())
def test_a_prompt_is_told_as_it_would_be_without_the_last(
    layout: list[Segment], data: st.DataObject
) -> None:
    """What is taken over of the messages of the prompt before is what would be made anew; and
    nobody who changes copies changes the messages of a later prompt.
    """
    last: Told | None = None
    most = data.draw(st.sampled_from([0, 4]))
    for _ in range(4):
        marks = Marks(most, data.draw(st.integers(0, len(layout))))
        made = told(layout, marks, last)
        assert list(made.messages) == messages_of(list(layout), marks)
        for message in map(copied, made.messages):
            message["content"] = "changed"
            for call in message.get("tool_calls", ()):
                call["function"]["name"] = "changed"
        last = made
        kept = data.draw(st.integers(0, len(layout)))
        layout = [*layout[:kept], *data.draw(st.lists(SEGMENTS, max_size=5))]


def test_a_turn_makes_the_messages_of_its_news_alone() -> None:
    """However long the prompt is: the last exchange, which the tail has left, and the new one."""
    layout = [segment(Role.SYSTEM, "rules"), segment(Role.USER, "goal"), segment(Role.USER, "tail")]
    last, made_anew = told(layout), []
    for number in range(40):
        answer = segment(Role.TOOL, f"{number} done", call=f"c{number}")
        layout[-1:] = [reply("", call(f"c{number}")), answer, segment(Role.USER, f"tail {number}")]
        made = told(layout, Marks(), last)
        kept = sum(a is b for a, b in zip(last.rest, made.rest, strict=False))
        made_anew.append(len(made.rest) - kept)
        last = made
    assert made_anew[2:] == [5] * 38
