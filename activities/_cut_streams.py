"""Whether a response is a stream that ended before its reply was complete.

What tells that it is complete is the protocol's own word for it, and never what the model says: in
a text that stands in JSON, neither quotes nor the beginnings of lines are as they are in events.
"""

from __future__ import annotations

import json
import re
from typing import Any

from activities._captured import CapturedCall
from activities._plain_events import BEGINS
from activities._unstreamed import MOST_QUOTED, ErrorReply, error_told, is_whole

_LAST_EVENTS = rb"message_stop|response\.(completed|incomplete|failed)"

_ENDS = re.compile(
    rb"^data:\s*\"?\[DONE\]|^event:\s*(" + _LAST_EVENTS + rb")"
    rb"|\"type\"\s*:\s*\"(" + _LAST_EVENTS + rb")\""
    rb"|(stop_reason|finish_?reason)\"\s*:\s*\"[^\"]",
    re.IGNORECASE | re.MULTILINE,
)
"""What tells that a stream of server-sent events is complete, in the protocols of litellm's
providers.
"""

_ERROR = re.compile(
    rb"^(?:event:[ \t]*error[ \t]*\r?\n(?:data:)?|error:)[ \t]*([^\r\n]*)", re.MULTILINE
)
"""An event that is called an error, and what it says."""

_SPOKEN = re.compile(rb"\"(content|text|response|delta|arguments|partial_json)\"\s*:\s*\"(?!\s*\")")
"""What tells that an event has text of a reply, in the protocols of litellm's providers."""

_OWN = {
    "anthropic": re.compile(rb"\"message_start\""),
    "gemini": re.compile(rb"\"candidates\""),
    "openai": re.compile(rb"\"choices\"|\"type\"\s*:\s*\"response\."),
}
"""What every stream of a provider's protocol has."""

_OBJECTS = re.compile(rb"\[\s*\{")
"""How an array of objects begins."""


def is_cut(captured: CapturedCall) -> bool:
    """Whether the response is a stream without what ends it."""
    content = captured.content
    if _is_undone(content):
        return True
    streamed = captured.has_events or BEGINS.match(content) is not None
    return streamed and not is_whole(captured) and not _ENDS.search(content)


def error_in(captured: CapturedCall) -> ErrorReply | None:
    """The error that a stream tells in an event of that name, whatever follows it: litellm knows
    some by what they say, and takes no notice of others.
    """
    told = _ERROR.search(captured.content)
    if told is None:
        return None
    said = _object_in(told[1])
    inner = said.get("error")
    words = (inner if isinstance(inner, dict) else said).get("message") or inner
    text = words if isinstance(words, str) else told[1].decode("utf-8", "replace")
    return ErrorReply(text[:MOST_QUOTED] or "the stream has an event that is called an error")


def error_words(captured: CapturedCall) -> str | None:
    """What a stream says of the error that it ends with, in an event of that name or in its data:
    litellm, which finds it, has words of its own beside those, or in their place.
    """
    if (named := error_in(captured)) is not None:
        return str(named)
    for line in reversed(captured.content.splitlines()):
        if line.startswith(b"data:") and b'"error"' in line:
            return error_told(_object_in(line.removeprefix(b"data:")))
    return None


def is_none(captured: CapturedCall) -> bool:
    """Whether the response is no stream at all: neither of events nor of JSON objects, one behind
    the other or in an array. What is packed in binary may be one.
    """
    content = captured.said.lstrip()
    if captured.has_events or BEGINS.match(content) or b"\0" in content:
        return False
    return not (_OBJECTS.match(content) or _object_in(content.partition(b"\n")[0]))


def is_spoken(captured: CapturedCall) -> bool:
    """Whether a response has text of a reply, be it in another protocol than the model's."""
    return captured.succeeded and _SPOKEN.search(captured.content) is not None


def is_foreign(captured: CapturedCall, protocol: str) -> bool:
    """Whether a response is in another protocol than that of the provider by this name; no, where
    that is none of the usual.
    """
    own = _OWN.get(protocol)
    return own is not None and not own.search(captured.content)


def _is_undone(content: bytes) -> bool:
    """Whether it is a stream of lines, as Ollama's are, whose last does not say that it is done."""
    lines = content.strip()
    if not lines.startswith(b"{"):
        return False
    first, last = lines.partition(b"\n")[0], lines.rpartition(b"\n")[2]
    # Most replies are one line, which is not parsed for nothing.
    return (
        b'"done"' in first
        and "done" in _object_in(first)
        and _object_in(last).get("done") is not True
    )


def _object_in(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
