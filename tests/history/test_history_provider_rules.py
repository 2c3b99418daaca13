"""The strict checker finds what providers refuse, and the messages made from a View have none of
it.
"""

from __future__ import annotations

from typing import Any

import pytest
from history_builders import THINKING, action, log_of, message, result

from runtime.base.values import ToolCall
from runtime.history.content import NodePart, TextPart
from runtime.history.events import ActionEvent, MessageEvent, ObservationEvent
from tests.history.oracle.conversation import GO_ON, messages_of
from tests.history.oracle.provider_rules import check_anthropic, check_openai, check_view
from tests.history.oracle.wire import AnthropicPrompt, anthropic_form, openai_form

CALL = {"id": "t1", "type": "function", "function": {"name": "python", "arguments": "{}"}}
USER = {"role": "user", "content": "hi"}
ASKS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
TOOL = {"role": "tool", "tool_call_id": "t1", "content": "ok"}


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [USER, ASKS],
        [USER, TOOL],
        [USER, ASKS, USER, TOOL],
        [USER, ASKS, TOOL, TOOL],
        [USER, ASKS, TOOL, ASKS, TOOL],
        [USER, {"role": "system", "content": "s"}, USER],
        [USER, {"role": "assistant", "content": "done"}],
        [{"role": "user", "content": ""}],
        [{"role": "oracle", "content": "x"}, USER],
        [USER, {"role": "assistant", "content": None, "tool_calls": []}, USER],
        [
            USER,
            {**ASKS, "tool_calls": [{**CALL, "id": "t" * 41}]},
            {**TOOL, "tool_call_id": "t" * 41},
        ],
        [
            USER,
            {**ASKS, "tool_calls": [{**CALL, "function": {"name": "a b", "arguments": "{}"}}]},
            TOOL,
        ],
        [
            USER,
            {**ASKS, "tool_calls": [{**CALL, "function": {"name": "a", "arguments": "{"}}]},
            TOOL,
        ],
    ],
)
def test_openai_checker_refuses(messages: Any) -> None:
    """Each of these would be answered with an error, or is beyond what every compatible server
    takes.
    """
    assert check_openai(messages) != []


def test_openai_checker_accepts_a_sound_prompt() -> None:
    """System, user, call and result."""
    assert check_openai([{"role": "system", "content": "s"}, USER, ASKS, TOOL, USER]) == []


A_TEXT = {"type": "text", "text": "hi"}
A_USE = {"type": "tool_use", "id": "t1", "name": "python", "input": {}}
A_RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}


def turns(*contents: list[Any]) -> AnthropicPrompt:
    return AnthropicPrompt(
        "", [{"role": ("user", "assistant")[n % 2], "content": c} for n, c in enumerate(contents)]
    )


@pytest.mark.parametrize(
    "prompt",
    [
        turns(),
        turns([A_TEXT], [A_USE]),
        turns([A_TEXT], [A_USE], [A_TEXT]),
        turns([A_TEXT], [A_USE], [A_TEXT, A_RESULT]),
        turns([A_TEXT], [A_USE], [A_RESULT, A_RESULT]),
        turns([A_RESULT]),
        turns([A_TEXT], [A_USE], [A_RESULT], [A_USE], [A_RESULT]),
        turns([A_TEXT], [A_TEXT, *THINKING, A_USE], [A_RESULT]),
        turns(
            [A_TEXT],
            [*THINKING, {"type": "thinking", "thinking": "x", "signature": "y"}, A_USE],
            [A_RESULT],
        ),
        turns([*THINKING, A_TEXT]),
        turns([{"type": "text", "text": " "}]),
        turns([A_TEXT], [{**A_USE, "id": "a b"}], [{**A_RESULT, "tool_use_id": "a b"}]),
        turns([A_TEXT], [{**A_USE, "input": "x"}], [A_RESULT]),
        turns([A_TEXT], [A_TEXT]),
        AnthropicPrompt(
            "", [{"role": "assistant", "content": [A_TEXT]}, {"role": "user", "content": [A_TEXT]}]
        ),
    ],
)
def test_anthropic_checker_refuses(prompt: AnthropicPrompt) -> None:
    """Each of these would be answered with an error."""
    assert check_anthropic(prompt, [THINKING]) != []


def test_anthropic_checker_accepts_a_sound_prompt() -> None:
    """Thinking first and unaltered, the result first in the next turn."""
    assert (
        check_anthropic(turns([A_TEXT], [*THINKING, A_TEXT, A_USE], [A_RESULT, A_TEXT]), [THINKING])
        == []
    )


def test_call_ids_used_again_are_told_apart() -> None:
    """Two responses with the same call id give two ids on the wire, each with its own result."""
    log = log_of(
        message("G", "goal"),
        action("A1", "r1", "t1"),
        result("O1", "t1"),
        action("A2", "r2", "t1"),
        result("O2", "t1"),
    )
    wire = openai_form(messages_of(log.view.events))
    assert [m["tool_call_id"] for m in wire if m["role"] == "tool"] == ["t1", "t1-2"]
    assert check_view(log.view.events) == []


def test_one_response_is_one_message() -> None:
    """Thinking, text once, all calls of a batch; then all results in the calls' order, then what
    came between.
    """
    log = log_of(
        message("G", "goal"),
        action("A1", "r1", "t1", thinking=True),
        action("A2", "r1", "t2", thinking=True),
        message("U1"),
        result("O2", "t2"),
        result("O1", "t1"),
    )
    prompt = anthropic_form(messages_of(log.view.events))
    kinds = [[block["type"] for block in m["content"]] for m in prompt.messages]
    assert kinds == [
        ["text"],
        ["thinking", "tool_use", "tool_use"],
        ["tool_result", "tool_result", "text"],
    ]
    assert [b["tool_use_id"] for b in prompt.messages[2]["content"][:2]] == ["t1", "t2"]
    assert check_view(log.view.events) == []


def test_replies_are_kept_apart_by_a_users_word() -> None:
    """Two replies in a row, one at the start and one at the end, would be refused: a user's word
    goes between.
    """
    log = log_of(message("A1", "agent"), message("A2", "agent"))
    assert [m.text for m in messages_of(log.view.events)] == [
        GO_ON,
        "words A1",
        GO_ON,
        "words A2",
        GO_ON,
    ]
    assert check_view(log.view.events) == []


@pytest.mark.parametrize(
    "events", [[], [message("S", "system")], [message("U"), message("S", "system")]]
)
def test_sparse_views_are_valid(events: list[MessageEvent]) -> None:
    """Nothing at all, a system prompt alone, and a system message behind others."""
    assert check_view(log_of(*events).view.events) == []


def test_strange_calls_and_empty_texts_are_made_valid() -> None:
    """Ids, names and arguments that models make up, and texts without a word in them."""
    odd = ActionEvent(
        id="A1",
        turn=0,
        llm_response_id="r1",
        tool_call_id="call 1/é" * 9,
        tool_calls=(ToolCall(id="call 1/é" * 9, name="functions.python:0", arguments="print(1)"),),
    )
    nothing = MessageEvent(id="U0", turn=0, source="user", content=(TextPart(text=" "),))  # type: ignore[arg-type]
    log = log_of(
        nothing,
        odd,
        result("O1", "call 1/é" * 9),
        action("A2", "r2", "").model_copy(update={"source": ""}),
    )
    log.append(ObservationEvent(id="O2", turn=0, tool_call_id="", content=()))
    assert check_view(log.view.events) == []


def test_nodes_are_rendered_by_the_caller() -> None:
    """Where a live node stands in a message, the caller's rendering goes."""
    place = MessageEvent(id="U", turn=0, source="user", content=(NodePart(obj_id="foo"),))  # type: ignore[arg-type]
    (made,) = messages_of([place], lambda content: "file text")
    assert made.text == "file text"


def test_a_statement_without_a_call_keeps_its_source() -> None:
    """A text action is an assistant's message; a source that its text does not hold is added."""
    bare = ActionEvent(id="A1", turn=0, llm_response_id="r1", source="x = 1", text="Set x.")
    log = log_of(message("G", "goal"), bare, result("O1", None))
    assert messages_of(log.view.events)[1].text == "Set x.\n<script>\nx = 1\n</script>"
