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
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import Any

from runtime.base.native_arguments import read_arguments
from runtime.base.values import ToolCall
from runtime.projection.replies import TOOL_ARGUMENT, TOOL_NAME
from runtime.projection.segments import Role, Segment, common

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

REASONING_ITEMS = "reasoning_items"
"""The field of a message in which litellm takes them."""

_NESTED = ("content", "thinking_blocks", REASONING_ITEMS)

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
        if not self.most:
            return frozenset()

        def last(end: int, wanted: Callable[[Segment], bool]) -> list[int]:
            places = (place for place in range(end - 1, -1, -1) if wanted(layout[place]))
            return list(islice(places, 1))

        def kept(segment: Segment) -> bool:
            answers = segment.role in (Role.USER, Role.TOOL)
            return answers and bool(segment.text) and not segment.tail

        whole = len(layout)
        system = last(whole, lambda segment: segment.role is Role.SYSTEM)
        wanted = [*last(whole, kept), *system, *last(min(self.stable, whole), kept)]
        return frozenset(list(dict.fromkeys(wanted))[: self.most])


NO_MARKS = Marks()


@dataclass(frozen=True)
class Told:
    """A prompt's messages, and what a prompt that begins as this one does can take over of them.

    ``system`` are the places of its system's segments, ``starts`` those of its replies; ``before``
    has, for each reply, how many messages (without the system's) and names of calls come before it.
    ``marked`` are the places of marks behind others' segments.
    """

    layout: tuple[Segment, ...]
    opening: tuple[Message, ...]
    rest: tuple[Message, ...]
    blocks: bool
    system: tuple[int, ...]
    starts: tuple[int, ...]
    before: tuple[tuple[int, int], ...]
    names: tuple[str, ...]
    marked: frozenset[int]

    @property
    def messages(self) -> tuple[Message, ...]:
        """In their order. Later prompts take them over: who changes messages changes copies."""
        return (*self.opening, *self.rest)


def messages_of(layout: Sequence[Segment], marks: Marks = NO_MARKS) -> list[Message]:
    """The messages of a prompt; see ``told``."""
    return list(told(layout, marks).messages)


def told(layout: Sequence[Segment], marks: Marks = NO_MARKS, last: Told | None = None) -> Told:
    """A prompt as messages: one of the system, then users', assistants' and tools' in the layout's
    order.

    Consecutive segments of users are one message, with a blank line between them. A reply is a
    message as the model gave it, thinking blocks included, and the results of its calls follow it
    at once, in the order of the calls. A tool segment that answers no call of the reply before it
    becomes part of a user message. Call ids are made unique: providers want that of a whole prompt,
    and some give the same ones again.

    What was made of the ``last`` prompt is taken over up to the last reply before which the two are
    the same, so a turn costs what is new in it. The messages are the same without it.
    """
    layout = tuple(layout)
    places = marks.places(layout)
    # By identity: segments that are equal may stand in several places, of which one is marked.
    text = _Text(marks.most > 0, frozenset(id(layout[place]) for place in places))
    # Contents of the other form: nothing of them can be taken over.
    if last is not None and last.blocks is not text.blocks:
        last = None
    same = common(last.layout, layout) if last is not None else 0
    system = [place for place in (last.system if last is not None else ()) if place < same]
    system += [p for p in range(same, len(layout)) if layout[p].role is Role.SYSTEM]
    marked = places.difference(system)
    told_first = {"role": "system", "content": text.of([layout[p] for p in system])}
    kept = 0 if last is None else _exchanges_kept(last, same, marked)
    begin, messages, names = 0, list[Message](), list[str]()
    starts: list[int] = []
    before: list[tuple[int, int]] = []
    if last is not None and kept:
        begin, (told_before, named) = last.starts[kept - 1], last.before[kept - 1]
        messages, names = list(last.rest[:told_before]), list(last.names[:named])
        starts, before = list(last.starts[: kept - 1]), list(last.before[: kept - 1])
    # With the names of what is taken over: ids are unique in the whole prompt.
    used = set(names)
    for place, reply, answers in _exchanges(layout, begin):
        if reply is not None:
            starts.append(place)
            before.append((len(messages), len(names)))
        made, fresh = _exchange(reply, answers, used, text)
        messages += made
        names += fresh
    return Told(
        layout=layout,
        opening=(told_first,) if system else (),
        rest=tuple(messages),
        blocks=text.blocks,
        system=tuple(system),
        starts=tuple(starts),
        before=tuple(before),
        names=tuple(names),
        marked=marked,
    )


def _exchanges_kept(last: Told, same: int, marked: frozenset[int]) -> int:
    """Of how many of the last prompt's exchanges the beginning stands where it did, if the first
    ``same`` segments are those of before; the last of these is made again.
    """
    # An exchange ends where the next reply begins, and is made again if a mark is put into it, or
    # was.
    # ``same - 1``: what follows the last common segment may belong to the same message.
    end = min((same - 1, *marked, *last.marked))
    return bisect_right(last.starts, end)


def copied(message: Message) -> Message:
    """A copy of a message, of which anything may be changed."""
    made = message.copy()
    # Most contents are texts.
    if calls := made.get("tool_calls"):
        made["tool_calls"] = [{**call, "function": dict(call["function"])} for call in calls]
    elif made["role"] != "assistant" and type(made["content"]) is str:
        return made
    for name in _NESTED:
        if name in made and type(made[name]) is list:
            made[name] = deepcopy(made[name])
    return made


def _exchange(
    reply: Segment | None, answers: Sequence[Segment], used: set[str], text: _Text
) -> tuple[list[Message], list[str]]:
    """The messages of a reply and of what follows it, and the names of its calls."""
    messages: list[Message] = []
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
    # A message made of empty texts would be refused.
    others = [s for s in answers if not (s.role is Role.TOOL and s.tool_call_id in ids) and s.text]
    if others:
        messages.append({"role": "user", "content": text.of(others)})
    return messages, names


def tools_of(form: str) -> list[dict[str, Any]] | None:
    """The native tools of a call: ``python`` where the reply's form is ``tool``, else none."""
    return [PYTHON_TOOL] if form == "tool" else None


def _exchanges(
    layout: Sequence[Segment], begin: int
) -> Iterator[tuple[int, Segment | None, list[Segment]]]:
    """Each reply from ``begin`` on, its place, and the segments up to the next one, without the
    system's; first those before any reply, with None.
    """
    start, reply, answers = begin, None, list[Segment]()
    for place in range(begin, len(layout)):
        segment = layout[place]
        if segment.role is Role.ASSISTANT:
            if reply is not None or answers:
                yield start, reply, answers
            start, reply, answers = place, segment, []
        elif segment.role is not Role.SYSTEM:
            answers.append(segment)
    if reply is not None or answers:
        yield start, reply, answers


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
        message[REASONING_ITEMS] = items
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
    # Numbers and no chance: the same prompt must be the same bytes, or no cache would know it.
    fresh, count = call_id, 1
    while fresh in used:
        count += 1
        fresh = f"{call_id}-{count}"
    used.add(fresh)
    return fresh


def _name(call: ToolCall) -> str:
    """The called name, with what no provider accepts in a name replaced."""
    # Never empty: a call without a name would be refused as well.
    return re.sub(r"[^A-Za-z0-9_-]", "_", call.name)[:_NAME_LIMIT] or "_"


def _arguments(call: ToolCall) -> str:
    """The arguments as given; those that are no JSON object as the text of one, for litellm parses
    them for some.
    """
    try:
        is_object = isinstance(read_arguments(call.arguments), dict)
    except ValueError:
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
