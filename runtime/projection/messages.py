"""A layout's segments as the messages that a provider takes, in the form that litellm passes to all
of them.

Providers refuse a prompt for reasons of form: a tool call without its result, a result that does
not stand right after its call, an empty message, arguments that are no JSON object. A model's own
reply can have each of these faults, and none of them may end a job, so they are mended here, always
in the same way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from runtime.base.values import ToolCall
from runtime.interpreter.replies import TOOL_ARGUMENT, TOOL_NAME
from runtime.projection.segments import Role, Segment

NO_TEXT = "(no text)"
"""Stands for a message without text, which providers refuse."""

NO_RESULT = "(this call was not executed)"
"""Stands for the result of a native call to which no segment answers."""

PYTHON_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": TOOL_NAME,
        "description": "Executes one statement of Python in the job's interpreter.",
        "parameters": {
            "type": "object",
            "properties": {
                TOOL_ARGUMENT: {"type": "string", "description": "The statement's Python source."}
            },
            "required": [TOOL_ARGUMENT],
            "additionalProperties": False,
        },
    },
}

REASONING = "reasoning"
"""The type of the items in which OpenAI's Responses API gives a model's reasoning."""

_BETWEEN = "\n\n"
_NAME_LIMIT = 64

Message = dict[str, Any]


@dataclass(frozen=True)
class Marks:
    """Where a provider that asks for it is told to keep the prompt so far in its cache.

    ``most`` is how many such marks a request may have; without any, messages are plain text.
    ``stable`` counts the first segments that stand as in the prompt before.
    """

    most: int = 0
    stable: int = 0

    def places(self, layout: Sequence[Segment]) -> frozenset[int]:
        """The segments, by their place, behind which a mark is put.

        Behind the system's, behind what the prompt before had in the cache (the provider looks back
        20 blocks only, and a turn may add more), and behind all that later prompts keep. Replies
        get none: they are sent as the model gave them.
        """
        system = [i for i, segment in enumerate(layout) if segment.role is Role.SYSTEM]
        keep = [
            i
            for i, s in enumerate(layout)
            if not s.tail and s.text and s.role in (Role.USER, Role.TOOL)
        ]
        before = [i for i in keep if i < self.stable]
        wanted = dict.fromkeys([*keep[-1:], *system[-1:], *before[-1:]])
        return frozenset(list(wanted)[: self.most])


NO_MARKS = Marks()


def messages_of(layout: Sequence[Segment], marks: Marks = NO_MARKS) -> list[Message]:
    """The messages of a prompt: one of the system, then users', assistants' and tools' in the
    layout's order.

    Consecutive segments of users are one message, with a blank line between them. A reply is a
    message as the model gave it, thinking blocks included, and the results of its calls follow it
    at once, in the order of the calls. A tool segment that answers no call of the reply before it
    becomes part of a user message. Call ids are made unique: providers want that of a whole prompt,
    and some give the same ones again.
    """
    text = _Text(marks.most > 0, frozenset(id(layout[place]) for place in marks.places(layout)))
    messages: list[Message] = []
    system = [s for s in layout if s.role is Role.SYSTEM]
    if system:
        messages.append({"role": "system", "content": text.of(system)})
    used: set[str] = set()
    for reply, answers in _exchanges([s for s in layout if s.role is not Role.SYSTEM]):
        calls: tuple[ToolCall, ...] = ()
        names: list[str] = []
        if reply is not None:
            calls = reply.tool_calls
            names = [_fresh(call.id, used) for call in calls]
            messages.append(_assistant(reply, names))
        ids = {call.id for call in calls}
        for call, name in zip(calls, names, strict=True):
            results = [s for s in answers if s.role is Role.TOOL and s.tool_call_id == call.id]
            content = text.of(results) if results else NO_RESULT
            messages.append({"role": "tool", "tool_call_id": name, "content": content})
        others = [
            s for s in answers if not (s.role is Role.TOOL and s.tool_call_id in ids) and s.text
        ]
        if others:
            messages.append({"role": "user", "content": text.of(others)})
    return messages


def tools_of(form: str) -> list[dict[str, Any]] | None:
    """The native tools of a call: ``python`` where the reply's form is ``tool``, else none."""
    return [PYTHON_TOOL] if form == "tool" else None


def _exchanges(segments: Sequence[Segment]) -> Iterator[tuple[Segment | None, list[Segment]]]:
    """Each reply with the segments up to the next one; first those before any reply, with None."""
    reply: Segment | None = None
    for is_reply, group in groupby(segments, key=lambda s: s.role is Role.ASSISTANT):
        if not is_reply:
            yield reply, list(group)
            reply = None
            continue
        for segment in group:
            if reply is not None:
                yield reply, []
            reply = segment
    if reply is not None:
        yield reply, []


def _assistant(reply: Segment, names: Sequence[str]) -> Message:
    text = reply.text if reply.text.strip() else ""
    message: Message = {
        "role": "assistant",
        "content": text or (None if reply.tool_calls else NO_TEXT),
    }
    thoughts = [dict(block) for block in reply.thinking]
    if blocks := [block for block in thoughts if block.get("type") != REASONING]:
        message["thinking_blocks"] = blocks
    # Without its content, which the provider has encrypted, an item is a reference to what the
    # provider may have deleted.
    if items := [
        block
        for block in thoughts
        if block.get("type") == REASONING and block.get("encrypted_content")
    ]:
        message["reasoning_items"] = items
    if reply.tool_calls:
        message["tool_calls"] = [
            {
                "id": name,
                "type": "function",
                "function": {"name": _name(call), "arguments": _arguments(call)},
            }
            for call, name in zip(reply.tool_calls, names, strict=True)
        ]
    return message


def _fresh(call_id: str, used: set[str]) -> str:
    """``call_id``, or where the prompt has it already, a variant of it.

    Ids are not otherwise changed: some carry data.
    """
    fresh, count = call_id, 1
    while fresh in used:
        count += 1
        fresh = f"{call_id}-{count}"
    used.add(fresh)
    return fresh


def _name(call: ToolCall) -> str:
    """The called name, with what no provider accepts in a name replaced."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", call.name)[:_NAME_LIMIT] or "_"


def _arguments(call: ToolCall) -> str:
    """The arguments as given; those that are no JSON object as the text of one, for litellm parses
    them for some.
    """
    try:
        is_object = isinstance(json.loads(call.arguments), dict)
    except (json.JSONDecodeError, RecursionError):
        is_object = False
    return (
        call.arguments
        if is_object
        else json.dumps({"unparsed": call.arguments}, ensure_ascii=False)
    )


@dataclass(frozen=True)
class _Text:
    """Makes contents of segments: one text, or for a cache with marks a block for each, the
    ``marked`` ones with a mark.

    A block's text never depends on what else the message holds, so that it stays the same when the
    tail behind it goes.
    """

    blocks: bool
    marked: frozenset[int]

    def of(self, segments: Sequence[Segment]) -> str | list[dict[str, Any]]:
        told = [segment for segment in segments if segment.text]
        if not self.blocks or not told:
            return _BETWEEN.join(segment.text for segment in told) or NO_TEXT
        return [self._block(segment) for segment in told]

    def _block(self, segment: Segment) -> dict[str, Any]:
        block: dict[str, Any] = {"type": "text", "text": segment.text}
        return (
            block | {"cache_control": {"type": "ephemeral"}}
            if id(segment) in self.marked
            else block
        )
