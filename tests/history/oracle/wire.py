"""Messages in the form of OpenAI's Chat Completions and of Anthropic's Messages API.

The job's own calls go through litellm, which makes the wire form of each provider. These two forms
are what the strict checker reads, and what an auditor can compare with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from runtime.base.digests import digest_bytes
from tests.history.oracle.conversation import DEFAULT_TOOL, Message, Speaker

OPENAI_ID = re.compile(r".{1,40}", re.DOTALL)
ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AnthropicPrompt:
    """``system`` and ``messages`` of a request to Anthropic's Messages API."""

    system: str
    messages: list[Json]


def openai_form(messages: Iterable[Message]) -> list[Json]:
    """``messages`` of a Chat Completions request. Thinking blocks are not part of that API."""
    made: list[Json] = []
    for message in messages:
        data: Json = {"role": message.speaker.value, "content": message.text}
        if message.calls:
            data["content"] = message.text or None
            data["tool_calls"] = [
                {
                    "id": _id(call.id, OPENAI_ID),
                    "type": "function",
                    "function": {
                        "name": _name(call.name),
                        "arguments": json.dumps(_object(call.arguments)),
                    },
                }
                for call in message.calls
            ]
        if message.call_id is not None:
            data["tool_call_id"] = _id(message.call_id, OPENAI_ID)
        made.append(data)
    return made


def anthropic_form(messages: Iterable[Message]) -> AnthropicPrompt:
    """A Messages API request: results are blocks of a user's turn, and a user's messages in a row
    are one turn.
    """
    system: list[str] = []
    turns: list[Json] = []
    for message in messages:
        if message.speaker is Speaker.SYSTEM:
            system.append(message.text)
            continue
        role = "assistant" if message.speaker is Speaker.ASSISTANT else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"].extend(_blocks(message))
        else:
            turns.append({"role": role, "content": _blocks(message)})
    return AnthropicPrompt("\n\n".join(system), turns)


def _blocks(message: Message) -> list[Json]:
    if message.call_id is not None:
        name = _id(message.call_id, ANTHROPIC_ID)
        return [{"type": "tool_result", "tool_use_id": name, "content": message.text}]
    blocks: list[Json] = list(message.thinking)
    if message.text.strip():
        blocks.append({"type": "text", "text": message.text})
    blocks.extend(
        {
            "type": "tool_use",
            "id": _id(call.id, ANTHROPIC_ID),
            "name": _name(call.name),
            "input": _object(call.arguments),
        }
        for call in message.calls
    )
    return blocks


def _id(call_id: str, allowed: re.Pattern[str]) -> str:
    """``call_id``, or a digest of it where the provider would not take it."""
    if allowed.fullmatch(call_id):
        return call_id
    return (
        "call_"
        + digest_bytes(call_id.encode("utf-8", "surrogatepass")).removeprefix("sha256:")[:24]
    )


def _name(name: str) -> str:
    """``name`` as a provider takes it: models make up names that no tool may have."""
    if TOOL_NAME.fullmatch(name):
        return name
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or DEFAULT_TOOL


def _object(arguments: str) -> Json:
    """The arguments as an object; text that is none goes under the key ``arguments``."""
    try:
        value = json.loads(arguments)
    except ValueError:
        value = arguments
    return value if isinstance(value, dict) else {"arguments": value}
