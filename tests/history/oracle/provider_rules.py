"""The rules by which OpenAI's and Anthropic's APIs refuse a prompt, checked strictly.

Stricter than the APIs where they are lenient: call ids are unique in the whole prompt, Anthropic's
roles alternate, no prompt ends with the assistant. Sources: OpenAI's Chat Completions reference;
Anthropic's Messages reference and "Building with extended thinking"; and the texts of the errors
that both return.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from runtime.history.events import ActionEvent, ShownEvent
from tests.history.oracle.conversation import messages_of, thinking_of
from tests.history.oracle.wire import (
    ANTHROPIC_ID,
    OPENAI_ID,
    TOOL_NAME,
    AnthropicPrompt,
    Json,
    anthropic_form,
    openai_form,
)

Violations = list[str]
THINKING = frozenset({"thinking", "redacted_thinking"})


def check_view(events: Sequence[ShownEvent]) -> Violations:
    """What either provider would refuse in the messages made from the View's ``events``; empty if
    nothing.
    """
    messages = messages_of(events)
    found = [f"openai: {v}" for v in check_openai(openai_form(messages))]
    originals = thinking_turns(events)
    return found + [f"anthropic: {v}" for v in check_anthropic(anthropic_form(messages), originals)]


def thinking_turns(events: Iterable[ShownEvent]) -> list[tuple[Json, ...]]:
    """The thinking blocks of each response that has some, as the events hold them."""
    responses: dict[str, list[ActionEvent]] = {}
    for event in events:
        if type(event) is ActionEvent:
            responses.setdefault(event.llm_response_id, []).append(event)
    return [blocks for blocks in map(thinking_of, responses.values()) if blocks]


def check_openai(messages: Sequence[Json]) -> Violations:
    """What the Chat Completions API would refuse in ``messages``."""
    found: Violations = []
    waiting: list[str] = []
    used: set[str] = set()
    body = False
    for at, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                found.append(
                    f"messages[{at}]: a tool message that answers no call of the message before"
                )
            else:
                waiting.remove(message["tool_call_id"])
            if not isinstance(content, str):
                found.append(f"messages[{at}]: a tool message without text")
            continue
        if waiting:
            found.append(
                f"messages[{at}]: calls {waiting} are not answered directly after their message"
            )
            waiting = []
        if role in {"system", "developer"}:
            if body:
                found.append(f"messages[{at}]: a system message behind others")
        elif role in {"user", "assistant"}:
            body = True
        else:
            found.append(f"messages[{at}]: unknown role {role!r}")
        calls = message.get("tool_calls", [])
        if "tool_calls" in message and (role != "assistant" or not calls):
            found.append(f"messages[{at}]: tool_calls where none may be, or an empty list")
        if not calls and not (isinstance(content, str) and content):
            found.append(f"messages[{at}]: no content")
        found += [f"messages[{at}]: {v}" for call in calls for v in _check_openai_call(call, used)]
        waiting = [call["id"] for call in calls]
    if waiting:
        found.append(f"the end: calls {waiting} are not answered")
    if not messages or messages[-1].get("role") not in {"user", "tool"}:
        found.append("the end: neither a user nor a tool message")
    return found


def _check_openai_call(call: Json, used: set[str]) -> Violations:
    found: Violations = []
    if call["id"] in used:
        found.append(f"call id {call['id']!r} is used twice")
    used.add(call["id"])
    if not OPENAI_ID.fullmatch(call["id"]):
        found.append(f"call id {call['id']!r} is empty or too long")
    if not TOOL_NAME.fullmatch(call["function"]["name"]):
        found.append(f"function name {call['function']['name']!r}")
    try:
        json.loads(call["function"]["arguments"])
    except ValueError:
        found.append("arguments that are not JSON")
    return found


def check_anthropic(
    prompt: AnthropicPrompt, originals: Iterable[tuple[Json, ...]] = ()
) -> Violations:
    """What the Messages API would refuse in ``prompt``.

    ``originals`` are the thinking blocks of each reply as the model gave them: a turn's must be
    equal to one of them.
    """
    found: Violations = []
    turns = list(originals)
    used: set[str] = set()
    waiting: list[str] = []
    for at, message in enumerate(prompt.messages):
        role, blocks = message.get("role"), message.get("content") or []
        if role != ("user", "assistant")[at % 2]:
            found.append(f"messages[{at}]: roles do not alternate, beginning with the user")
        if not blocks:
            found.append(f"messages[{at}]: no content")
        results = _leading_results(blocks)
        if sorted(results) != sorted(waiting):
            found.append(
                f"messages[{at}]: calls {waiting}, and at the start of the next message results"
                f" {results}"
            )
        found += [
            f"messages[{at}]: {v}" for v in _check_blocks(role, blocks[len(results) :], used, turns)
        ]
        waiting = [block["id"] for block in blocks if block.get("type") == "tool_use"]
    if waiting:
        found.append(f"the end: calls {waiting} are not answered")
    if not prompt.messages or prompt.messages[-1].get("role") != "user":
        found.append("the end: not a user message")
    return found


def _leading_results(blocks: Sequence[Json]) -> list[str]:
    results: list[str] = []
    for block in blocks:
        if block.get("type") != "tool_result":
            break
        results.append(block["tool_use_id"])
    return results


def _check_blocks(
    role: Any, blocks: Sequence[Json], used: set[str], turns: Sequence[tuple[Json, ...]]
) -> Violations:
    found: Violations = []
    thinking = tuple(block for block in blocks if block.get("type") in THINKING)
    if thinking and (role != "assistant" or tuple(blocks[: len(thinking)]) != thinking):
        found.append("thinking blocks that are not first in an assistant's turn")
    if thinking and thinking not in turns:
        found.append("thinking blocks that differ from those the model gave")
    for block in blocks:
        match block.get("type"):
            case "text":
                if not block["text"].strip():
                    found.append("an empty text block")
            case "tool_use":
                found += _check_tool_use(role, block, used)
            case "tool_result":
                found.append("a tool result that is not at the start of a user's turn")
            case kind if kind not in THINKING:
                found.append(f"unknown block {kind!r}")
    return found


def _check_tool_use(role: Any, block: Json, used: set[str]) -> Violations:
    found: Violations = []
    if role != "assistant":
        found.append("a tool call outside an assistant's turn")
    if block["id"] in used:
        found.append(f"tool_use id {block['id']!r} is used twice")
    used.add(block["id"])
    if not ANTHROPIC_ID.fullmatch(block["id"]):
        found.append(f"tool_use id {block['id']!r}")
    if not TOOL_NAME.fullmatch(block["name"]):
        found.append(f"tool name {block['name']!r}")
    if not isinstance(block["input"], dict):
        found.append("input that is not an object")
    return found
