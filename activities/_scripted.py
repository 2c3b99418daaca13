"""``scripted/FILE``: a model whose replies are written down, called through litellm like any other.

FILE is a YAML list of replies, or a Python file with ``respond(messages)``, which returns one reply. A reply is a
text, or a mapping with the fields of ``ScriptedReply``. The reply to a prompt is the one after as many as the
prompt has assistant messages: nothing is remembered between calls, so a retry or a resumed job gets the same.
The provider has no wire: the record is the request as handed over, and is marked so.
"""

from __future__ import annotations

import asyncio
import copy
import importlib.util
import json
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from ruamel.yaml import YAML, YAMLError

from activities._recorder import CallRecorder, SentRequest, Silence, current
from runtime.archive.records import Capture
from runtime.digests import canonical_json
from runtime.errors import InputError
from runtime.interpreter.replies import SCRIPT_CLOSE, SCRIPT_OPEN, TOOL_ARGUMENT, TOOL_NAME

PROVIDER = "scripted"
PIECE = 64
"""Characters of a reply in one chunk of its stream."""

_loading = threading.Lock()


class ScriptedFailure(BaseModel):
    """An error in place of a reply, as an HTTP provider would answer it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: int = Field(ge=400, le=599)
    message: str = "scripted failure"
    retry_after: float | None = Field(default=None, ge=0)


class ScriptedCall(BaseModel):
    """A native tool call as it stands, for replies that a well-behaved model would not give."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = TOOL_NAME
    arguments: str


class ScriptedReply(BaseModel):
    """One reply. ``code`` is delivered in the form that the job asked for; ``calls`` always as native calls.

    ``delay`` is in seconds, before the first piece. ``fail`` and ``break_after`` (a number of characters after which the
    stream breaks off) happen on the first ``times`` attempts at the turn, and the reply comes on the next.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = ""
    code: str | None = None
    calls: tuple[ScriptedCall, ...] = ()
    thinking: str | None = None
    refusal: str | None = None
    finish_reason: str | None = None
    delay: float = Field(default=0.0, ge=0)
    fail: ScriptedFailure | None = None
    break_after: int | None = Field(default=None, ge=0)
    times: int = Field(default=1, ge=1)


class ScriptedError(Exception):
    """A scripted provider's error, with the status that litellm and its callers look at."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status_code = status
        self.message = message


@dataclass(frozen=True)
class Delivery:
    """A reply in the form that was asked for: what its stream is cut from."""

    text: str
    calls: tuple[dict[str, Any], ...]
    thinking: str | None
    refusal: str | None
    finish_reason: str
    id: str

    def deltas(self) -> Iterator[dict[str, Any]]:
        """The pieces of a stream, without the last, which has the reason for the end."""
        if self.thinking is not None:
            yield {"thinking_blocks": [{"type": "thinking", "thinking": self.thinking, "signature": "scripted"}]}
        if self.refusal is not None:
            yield {"refusal": self.refusal}
        for start in range(0, len(self.text), PIECE):
            yield {"content": self.text[start : start + PIECE]}
        for index, call in enumerate(self.calls):
            arguments = call["function"]["arguments"]
            head = {**call, "index": index, "function": {"name": call["function"]["name"], "arguments": ""}}
            yield {"tool_calls": [head]}
            for start in range(0, len(arguments), PIECE):
                piece = {"arguments": arguments[start : start + PIECE]}
                yield {"tool_calls": [{"index": index, "type": "function", "function": piece}]}


async def deliver(file: str, messages: Sequence[dict[str, Any]], tools: Any, options: dict[str, Any]) -> Delivery:
    """Archive the request, and find, delay or fail the reply to it.

    Raises:
        ScriptedError: the script says so, or has no usable reply: status 400, which is not retried.
    """
    recorder = _recorder()
    request = {"model": f"{PROVIDER}/{file}", "messages": messages, "tools": tools, **options}
    body = canonical_json({name: value for name, value in request.items() if value is not None})
    await recorder.sending(SentRequest(Capture.HANDED_OVER, body))
    number = sum(message.get("role") == "assistant" for message in messages)
    reply = await asyncio.to_thread(_reply, file, messages, number)
    await _pause(recorder, reply.delay)
    if reply.fail is not None and recorder.temporal_attempt <= reply.times:
        raise _refusal(recorder, reply.fail)
    delivery = _in_form(reply, number, native=bool(tools))
    if reply.break_after is None or recorder.temporal_attempt > reply.times:
        recorder.answering(200, {})
    return delivery


async def stream(file: str, messages: Sequence[dict[str, Any]], tools: Any, options: dict[str, Any]) -> AsyncIterator[Any]:
    """The reply as the deltas of a stream, then its finish reason as a string."""
    recorder = _recorder()
    delivery = await deliver(file, messages, tools, options)
    cut = await _cut(file, messages, recorder)
    sent = 0
    for delta in delivery.deltas():
        size = _characters(delta)
        if cut is not None and sent + size > cut:
            raise _broken(recorder, sent)
        sent += size
        recorder.received(canonical_json(delta) + b"\n")
        yield delta
    if cut is not None:
        raise _broken(recorder, sent)
    recorder.received(canonical_json({"finish_reason": delivery.finish_reason}) + b"\n")
    yield delivery.finish_reason
