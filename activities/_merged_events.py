"""Events of a stream that say one after the other what one can say, as one.

A model streams an event a token, and litellm takes 0.3 ms of processor time for each, whatever it
says: a reply of 500 tokens would cost ten times what all else of its turn does. Nobody watches a
job's reply come, so what litellm is given has the pieces of one text put together. What was
received is captured before, byte by byte.

Only what is known to be a piece of a text is merged, in three protocols: a chunk of OpenAI's chat
completions, an event of Anthropic's messages, one of OpenAI's Responses API. Two events are one if
all that they say besides is the same. Everything else goes on as it came, but for pings, for what
litellm's readers miss (``_plain_events``) or cannot read (``_readable``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from activities._charsets import MARK
from activities._plain_events import (
    BEGINS,
    is_whole_event,
    may_begin,
    plain_events,
    unmistakable,
)
from activities._readable import readable_event

MOST_HELD = 64 * 1024
"""Bytes that are held of events that are put together."""

MOST_UNENDED = 2 * MOST_HELD
"""Bytes that are held of an event that has not ended, behind which a stream goes on as it comes."""

_PING = re.compile(rb"(event: ping\n)?data: \{ ?\"type\": ?\"ping\" ?\}\n\n")
"""An event of Anthropic's that says nothing: before a stream's last event litellm takes it for that
one, and reads no further.
"""

_CHAT = ("content", "reasoning_content", "reasoning", "refusal")
"""Texts in a delta of OpenAI's chat completions, and of those who speak like it."""

_MESSAGES = {
    "text_delta": "text",
    "input_json_delta": "partial_json",
    "thinking_delta": "thinking",
}
"""Deltas of Anthropic's messages, and where each has its text."""

_RESPONSES = frozenset(
    (
        "response.output_text.delta",
        "response.function_call_arguments.delta",
        "response.reasoning_summary_text.delta",
        "response.reasoning_text.delta",
        "response.refusal.delta",
    )
)
_PASSING = ("sequence_number", "obfuscation")
"""Fields that differ from one piece of a text to the next: the event's number, and letters at
random that hide its length.
"""


@dataclass(frozen=True)
class _Piece:
    """An event with a piece of a text: ``raw`` as it came, with its ``name`` (the line ``event:``,
    if there is one), the ``text``, at ``field`` of ``place``, and what the event says ``besides``,
    of which ``place`` is a part.
    """

    raw: bytes
    name: bytes
    text: str
    place: dict[str, Any]
    field: str
    besides: dict[str, Any]
    passing: dict[str, Any]

    def goes_on(self, other: _Piece) -> bool:
        """Whether it is another piece of the text that ``other`` has a piece of."""
        return (self.name, self.field, self.besides) == (other.name, other.field, other.besides)

    def with_text(self, text: str) -> bytes:
        """The event that says ``text`` in place of its own."""
        self.place[self.field] = text
        # In ASCII: the halves of a surrogate pair, which a stream may split, are one character.
        data = json.dumps({**self.besides, **self.passing})
        return unmistakable(b"%sdata: %s\n\n" % (self.name, data.encode()))


class MergedEvents:
    """The body of one response, as it comes and as it goes on: as it came if it ``is_refused``, or
    does not begin as a stream of events does, whatever its headers say.
    """

    def __init__(self, *, is_refused: bool = False) -> None:
        self._rest = b""
        self._begun = False
        self._held: list[_Piece] = []
        self._bytes = 0
        self._passes = is_refused

    def feed(self, data: bytes) -> bytes:
        """What goes on now that ``data`` has come; nothing while what follows may belong to it."""
        if not self._begun:
            data, self._rest = (self._rest + data).removeprefix(MARK), b""
            if MARK.startswith(data) or (may_begin(data) and not self._passes):
                self._rest = data
                return b""
            self._begun, self._passes = True, self._passes or BEGINS.match(data) is None
        if self._passes:
            return data
        came = (self._rest + data).replace(b"\r\n", b"\n")
        *events, self._rest = came.split(b"\n\n")
        if len(self._rest) > MOST_UNENDED:
            # Some servers have no empty line between events.
            lines, _, last = self._rest.rpartition(b"\n")
            if is_whole_event(lines):
                events, self._rest = [*events, lines], last
        # Where lines end in CR alone, it is none of the three protocols.
        if b"\r" in came[:-1] or len(self._rest) > MOST_UNENDED:
            self._passes, self._rest = True, b""
            return self._let_go() + came
        return b"".join(part for event in events for part in self._taken(event + b"\n\n"))

    def end(self) -> bytes:
        """What is left when nothing more comes: a last event counts that lacks its empty line."""
        rest, self._rest = self._rest, b""
        if not is_whole_event(rest.strip()):
            return self._let_go() + rest
        last = b"".join(self._taken(rest.strip() + b"\n\n"))
        return last + self._let_go()

    @property
    def held(self) -> str:
        """What the model has said in events that have come, and have not gone on."""
        return "".join(piece.text for piece in self._held)

    def _taken(self, came: bytes) -> Iterator[bytes]:
        for event in plain_events(came):
            if _PING.fullmatch(event) is None:
                yield from self._heard(readable_event(event))

    def _heard(self, event: bytes) -> Iterator[bytes]:
        piece = _piece(event)
        if piece is None:
            yield self._let_go()
            yield event
            return
        if self._held and (self._bytes > MOST_HELD or not piece.goes_on(self._held[0])):
            yield self._let_go()
        self._held.append(piece)
        self._bytes += len(event)

    def _let_go(self) -> bytes:
        held, text = self._held, self.held
        self._held, self._bytes = [], 0
        if len(held) < 2:
            return b"".join(piece.raw for piece in held)
        return held[-1].with_text(text)


def _piece(event: bytes) -> _Piece | None:
    """An event that has a piece of a text; None for any other."""
    # One line of data, with one that names the event before it at most.
    name, line = b"", event[:-2]
    if line.startswith(b"event: "):
        name, _, line = line.partition(b"\n")
        name += b"\n"
    if not line.startswith(b"data: {") or b"\n" in line:
        return None
    try:
        said = json.loads(line[len(b"data: ") :])
        place, field = _text_in(said)
        text = place[field]
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None
    if not isinstance(text, str):
        return None
    passing = {one: said.pop(one) for one in _PASSING if one in said}
    place[field] = ""
    return _Piece(event, name, text, place, field, said, passing)


def _text_in(said: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Where an event has its piece of a text.

    Raises:
        ValueError, LookupError, TypeError, AttributeError: if it has none that is known, or more.
    """
    kind = said.get("type")
    if kind == "content_block_delta":
        return said["delta"], _MESSAGES[said["delta"]["type"]]
    if kind in _RESPONSES:
        return said, "delta"
    (choice,) = said["choices"]
    delta = choice["delta"]
    if calls := delta.get("tool_calls"):
        (call,) = calls
        if call["function"].get("name") or any(delta.get(one) for one in _CHAT):
            raise ValueError("it begins a call, or says something besides")
        return call["function"], "arguments"
    (field,) = (one for one in _CHAT if delta.get(one) is not None)
    return delta, field
