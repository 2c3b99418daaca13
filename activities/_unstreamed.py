"""Responses that are not what was asked for: a whole reply where a stream was, or no reply of a
model at all.

A gateway that ignores ``stream`` answers with one JSON object, which is as good a reply. A login
page or a proxy's notice comes with such a status too; calling again gets the same page, so it ends
the job with the page's words.
"""

from __future__ import annotations

import html
import json
import re
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import httpx

from activities._captured import CapturedCall
from activities._plain_events import BEGINS

MOST_QUOTED = 300
"""Characters of a page that are quoted."""

_PAGE = re.compile(rb"<(!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_HIDING = re.compile(rb"<(!--|script\b|style\b|head\b)", re.IGNORECASE)
_ENDS = {
    b"!--": re.compile(rb"-->"),
    b"script": re.compile(rb"</script\s*>", re.IGNORECASE),
    b"style": re.compile(rb"</style\s*>", re.IGNORECASE),
    b"head": re.compile(rb"</head\s*>", re.IGNORECASE),
}
_TITLE = re.compile(rb"<title[^<>]*>([^<]*)", re.IGNORECASE)
_MOST_READ = 64 * 1024

_LAST = (b"[DONE]", b"message_stop")
_SILENT = re.compile(
    rb"(data:\s*(\"?\[DONE\]\"?|\{\s*\"type\"\s*:\s*\"(ping|message_stop)\"\s*\})?"
    rb"|event:.*|id:.*|retry:.*|:.*|)",
    re.IGNORECASE,
)
"""A line of a stream that says nothing of a reply: a comment, or an event's name, end or empty
data.
"""


class NotAModel(Exception):
    """What answered is no model: the message says what it was and quotes it."""


class ErrorReply(Exception):
    """A response whose status is one of success, and that says in JSON that the call failed; the
    message is the provider's.
    """


class EmptyResponse(Exception):
    """A response of success without a byte, or a stream that ends and told nothing."""


class TornReply(Exception):
    """A response of success that is JSON as far as it came."""


_MOST_BESIDE = 2
"""Lines of data behind the first one of a stream whose one event is the reply: empty, or its
end.
"""


played: ContextVar[bytes | None] = ContextVar("holdfast_played_response", default=None)
"""A captured response: while it is set, the wire answers a model call with it, and asks nobody."""


def played_to(request: httpx.Request) -> httpx.Response | None:
    """The captured response to ``request`` while one is played, else None."""
    body = played.get()
    if body is None:
        return None
    return httpx.Response(
        200, headers={"content-type": "application/json"}, content=body, request=request
    )


def is_whole(captured: CapturedCall) -> bool:
    """Whether the response is one JSON object, and so perhaps the whole reply.

    One of several lines is a stream of them.
    """
    return captured.succeeded and isinstance(_object_in(whole_in(captured)), dict)


def whole_in(captured: CapturedCall) -> bytes:
    """What the response says, or the whole reply that is the one event of a stream: some servers
    that do not stream send it so.
    """
    said = captured.said
    # A stream has many events, and is not looked through for this.
    if not BEGINS.match(said) or said.count(b"\ndata:") > _MOST_BESIDE:
        return said
    data = [line.removeprefix(b"data:").strip() for line in said.splitlines()]
    objects = [text for text in data if text.startswith(b"{")]
    return objects[0] if len(objects) == 1 and _is_reply(_object_in(objects[0])) else said


def _is_reply(value: Any) -> bool:
    """Whether it is the reply and no piece of one, in the protocols of OpenAI and Anthropic."""
    match value:
        case {"object": "response", "output": [*_]} | {"type": "message", "content": [*_]}:
            return True
        case {"choices": [{"message": {}} as choice]}:
            return not choice.get("delta")
        case _:
            return False


def fault_in(captured: CapturedCall) -> Exception | None:
    """Why a response whose status is one of success can be no reply, as far as that shows without
    knowing the provider's protocol.
    """
    if not captured.succeeded:
        return None
    body = captured.said
    if not body.strip():
        return EmptyResponse(f"the response had status {captured.status} and no content")
    if any(last in body for last in _LAST) and all(
        _SILENT.fullmatch(line.strip()) for line in body.splitlines()
    ):
        return EmptyResponse("the stream ended and had no event of a reply")
    if _is_page(body[:_MOST_READ]) or (
        "html" in captured.content_type.lower() and body.lstrip().startswith(b"<")
    ):
        return NotAModel(f"a web page answered, not a model: {_words_of(body[:_MOST_READ])}")
    error = _error_in(first_in(body))
    return None if error is None else ErrorReply(error)


def unread(captured: CapturedCall) -> NotAModel | TornReply | ErrorReply:
    """The fault of a response that no reply was found in."""
    try:
        value = _loaded(captured.said)
    # Too deep for Python, but whole; and how deep that is depends on its version.
    except RecursionError:
        value = None
    except ValueError:
        return TornReply("the response is no JSON that can be read: it may have been cut off")
    # Beside what is no whole reply it says why.
    if (error := error_told(value)) is not None:
        return ErrorReply(error)
    return NotAModel(f"the response is no reply of a model: {_beginning(captured)}")


def foreign(captured: CapturedCall, protocol: str) -> NotAModel:
    """The fault of a stream whose text is in events that this provider's protocol does not have."""
    return NotAModel(
        f"the stream is not as models of `{protocol}` send it; if the endpoint speaks another"
        f" provider's protocol, the model's name must begin with that: {_beginning(captured)}"
    )


def _beginning(captured: CapturedCall) -> str:
    return _short(" ".join(captured.said[:_MOST_READ].decode("utf-8", "replace").split()))


def _object_in(body: bytes) -> Any:
    try:
        return _loaded(body)
    except (ValueError, RecursionError):
        return None


def _loaded(body: bytes) -> Any:
    """What begins as an object; None of anything else."""
    return json.loads(body) if body.lstrip().startswith(b"{") else None


def first_in(body: bytes) -> Any:
    """The object that a body of JSON is, or the first of a list or of lines of them."""
    if (value := _object_in(body)) is not None or b'"error"' not in body:
        return value
    if body.lstrip().startswith(b"{"):
        return _object_in(body.lstrip().partition(b"\n")[0])
    with suppress(ValueError, RecursionError):
        value = json.loads(body)
        return value[0] if isinstance(value, list) and value else None
    return None


def _error_in(value: Any) -> str | None:
    """The message of an object that says nothing but that there was an error."""
    # One that stands beside a reply says nothing.
    beside = isinstance(value, dict) and any(map(value.get, ("choices", "output", "content")))
    return None if beside else error_told(value)


def error_told(value: Any) -> str | None:
    """The message of an object's error; one that is null is none."""
    error = value.get("error") if isinstance(value, dict) else None
    if not error:
        return None
    message = error.get("message") if isinstance(error, dict) else error
    if isinstance(message, str) and message:
        return message
    # What Python reads it cannot always write, as deep as it is.
    with suppress(RecursionError):
        return json.dumps(error)[:MOST_QUOTED]
    return None


def _is_page(body: bytes) -> bool:
    """Whether a page of HTML begins, perhaps behind comments."""
    at = _first(body, 0)
    while body.startswith(b"<!--", at):
        end = body.find(b"-->", at + 4)
        if end < 0:
            return False
        at = _first(body, end + 3)
    return _PAGE.match(body, at) is not None


def _first(body: bytes, at: int) -> int:
    """Where what is no white space goes on."""
    while body[at : at + 1].isspace():
        at += 1
    return at


def _words_of(page: bytes) -> str:
    """The title and the text of a page, shortened."""
    title = _TITLE.search(page)
    told = " ".join([*(_read(title[1]) if title else ()), *_read(_seen(page))])
    return _short(told) if told else "(it has no text)"


def _seen(page: bytes) -> bytes:
    """What a page shows: no tags, no comments, and nothing of scripts, styles and the head.

    Whoever answers writes the page, so each byte is looked at a fixed number of times: an end that
    is nowhere is not looked for again.
    """
    shown: list[bytes] = []
    at, nowhere = 0, set[bytes]()
    while (tag := page.find(b"<", at)) >= 0:
        opening = _HIDING.match(page, tag)
        kind = opening[1].lower() if opening else b""
        end = None
        if opening and kind not in nowhere and (end := _ENDS[kind].search(page, opening.end())):
            past = end.end()
        else:
            nowhere.add(kind)
            past = page.find(b">", tag) + 1
        if not past:
            break
        shown.append(page[at:tag])
        at = past
    return b" ".join([*shown, page[at:]])


def _read(text: bytes) -> list[str]:
    """The words of a page's text."""
    words = text.decode("utf-8", "replace")
    # Of a character's number of more digits than Python reads, nothing is decoded.
    with suppress(ValueError):
        words = html.unescape(words)
    return words.split()


def _short(text: str) -> str:
    return text if len(text) <= MOST_QUOTED else text[:MOST_QUOTED] + "…"
