"""Replies of OpenAI's Responses API, read from the bytes that arrived.

litellm turns them into chunks of the chat protocol, and loses what a later prompt must hold:
reasoning items and refusals. Where it makes up a stream of a whole response, it gives a call's
arguments twice. So they are read here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from runtime.projection.messages import REASONING

_ENDED = frozenset({"response.completed", "response.incomplete"})
_PENDING = frozenset({"queued", "in_progress"})
_GIVEN_UP = frozenset({"cancelled", "failed"})
_CUT_OFF = {"max_output_tokens": "length", "content_filter": "content_filter"}


def response_in(body: bytes) -> dict[str, Any] | None:
    """The response that a body holds, whole or as a complete stream of events; None for bodies of
    other protocols.

    Some servers leave the output out of a stream's last event; then it is what the events before
    told.
    """
    # Most bodies are of other protocols, and none is parsed for this.
    if b'"response' not in body:
        return None
    if body.lstrip().startswith(b"{"):
        with suppress(ValueError, RecursionError):
            whole = json.loads(body)
            return (
                whole
                if whole.get("object") == "response" and isinstance(whole.get("output"), list)
                else None
            )
        return None
    if not any(b'"' + kind.encode() + b'"' in body for kind in _ENDED):
        return None
    items: list[Any] = []
    for event in _events(body):
        if event.get("type") == "response.output_item.done":
            items.append(event.get("item"))
        if event.get("type") in _ENDED and isinstance(event.get("response"), dict):
            return {**event["response"], "output": event["response"].get("output") or items}
    return None


def unfinished_by(body: bytes) -> str | None:
    """The status by which a body's response is none that the provider got through with: one that it
    will go on with, or has given up, may hold half a reply; None if it is another.
    """
    # An event that says that it is completed is believed: some copy into it what it was before.
    statuses = _GIVEN_UP | _PENDING if body.lstrip().startswith(b"{") else _GIVEN_UP
    # Few bodies name one: no other is parsed for this.
    if not any(b'"' + status.encode() + b'"' in body for status in statuses):
        return None
    status = str((response_in(body) or {}).get("status"))
    return status if status in statuses else None


def as_chat(response: Mapping[str, Any]) -> SimpleNamespace:
    """``response`` in the shape of litellm's whole responses, reasoning items in the place of
    thinking blocks.
    """
    texts: list[str] = []
    refusals: list[str] = []
    calls: list[SimpleNamespace] = []
    thoughts: list[dict[str, Any]] = []
    for item in response["output"]:
        match item:
            case {"type": "message", "content": [*parts]}:
                texts.append("".join(str(part.get("text") or "") for part in parts))
                refusals.extend(str(part["refusal"]) for part in parts if part.get("refusal"))
            case {"type": "function_call", "name": name, "arguments": arguments}:
                function = SimpleNamespace(name=name, arguments=arguments)
                calls.append(SimpleNamespace(id=item.get("call_id"), index=None, function=function))
            case {"type": kind} if kind == REASONING:
                thoughts.append(
                    {name: item[name] for name in _KEPT if item.get(name)} | {"type": REASONING}
                )
    message = SimpleNamespace(
        content="\n\n".join(filter(None, texts)),
        refusal="".join(refusals) or None,
        tool_calls=calls,
        thinking_blocks=thoughts,
    )
    choice = SimpleNamespace(message=message, finish_reason=_reason(response, bool(calls)))
    return SimpleNamespace(id=response.get("id"), usage=None, choices=[choice])


_KEPT = ("id", "summary", "content", "encrypted_content")
"""Fields of a reasoning item that say something."""


def _reason(response: Mapping[str, Any], calls: bool) -> str:
    details = response.get("incomplete_details") or {}
    if response.get("status") == "incomplete":
        return _CUT_OFF.get(str(details.get("reason")), "length")
    return "tool_calls" if calls else "stop"


def _events(body: bytes) -> Iterator[dict[str, Any]]:
    for line in body.splitlines():
        if line.startswith(b"data:"):
            with suppress(ValueError, RecursionError):
                event = json.loads(line[len(b"data:") :])
                if isinstance(event, dict):
                    yield event
