"""Events of a stream, spelled in the one way in which all of litellm's readers hear them.

It has a reader for each family of providers, and each takes what the others read for something
else: one drops a line with ``[DONE]`` in it, also where the model writes that; one ends a line at
each character at which Python does; one takes two lines of data for one JSON, others a JSON of two
lines for nothing; one fails on an event without data. What they miss would be a hole in a statement
that is executed. What is archived is what came.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

BEGINS = re.compile(rb"\s*(data|event|id|retry)?:")
"""How a stream of events begins, whatever its headers say that it is."""

_FIRST = (b"data:", b"event:", b"id:", b"retry:", b":")

_SPELLED = re.compile(rb"(event: [^\n]*\n)?data: \{[^\n]*\n\n")
"""An event that is spelled so already, but for what stands in its JSON."""

_MISREAD = {
    b"[DONE]": rb"\u005bDONE]",
    "\x85".encode(): rb"\u0085",
    "\u2028".encode(): rb"\u2028",
    "\u2029".encode(): rb"\u2029",
}
"""What stands in a text of a JSON and is taken for the stream's end or a line's, and how JSON
spells it otherwise.
"""

_DONE = b"[DONE]"
_UNHEARD = frozenset({b"", b"id", b"retry"})
"""Fields that say nothing of a reply: comments, an event's number, how to connect again."""


def may_begin(data: bytes) -> bool:
    """Whether ``data`` is too little to tell whether a stream of events begins."""
    begun = data.lstrip()
    return any(first.startswith(begun) and first != begun for first in _FIRST)


def plain_events(event: bytes) -> list[bytes]:
    """The events that ``event`` is, whose lines end in LF; as it came if it has a line of no known
    kind.
    """
    if _SPELLED.fullmatch(event):
        return [unmistakable(event)]
    said = _said(event)
    if said is None:
        return [event]
    if len(said) > 1 and not all(_is_json(data) for _, data in said):
        # A JSON may end its lines between any two of its words.
        said = [(b"".join(name for name, _ in said), b" ".join(data for _, data in said))]
    return [_spelled(name, data) for name, data in said]


def is_whole_event(event: bytes) -> bool:
    """Whether an event that may have been cut off is all there."""
    said = _said(event)
    return bool(said) and all(_is_json(data) for _, data in said or ())


def unmistakable(event: bytes) -> bytes:
    """An event with its JSON spelled so that no reader takes a part of it for something else."""
    if _DONE in event or not event.isascii():
        for text, spelled in _MISREAD.items():
            event = event.replace(text, spelled)
    return event


def _said(event: bytes) -> list[tuple[bytes, bytes]] | None:
    """The data of an event, line by line, each with the name that stands before it; None if it has
    a line of another kind.
    """
    said: list[tuple[bytes, bytes]] = []
    name = b""
    for field, value in _fields(event):
        if field == b"event":
            name = value
        elif field == b"data":
            if data := value.strip():
                said.append((name, data))
                name = b""
        elif field not in _UNHEARD:
            return None
    return said


def _fields(event: bytes) -> Iterator[tuple[bytes, bytes]]:
    for line in event.split(b"\n"):
        field, _, value = line.partition(b":")
        yield field, value.removeprefix(b" ")


def _spelled(name: bytes, data: bytes) -> bytes:
    head = b"event: %s\n" % name if name else b""
    if data.strip(b'"') == _DONE:
        return b"%sdata: %s\n\n" % (head, _DONE)
    line = b"%sdata: %s\n\n" % (head, data)
    return unmistakable(line) if data.startswith(b"{") else line


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return data == _DONE
    return True
