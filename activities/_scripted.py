"""The provider of ``scripted/FILE`` models, which litellm calls like any other.

It has no wire: what is captured is the request as handed over, and is marked so; the response is
the pieces of the reply as they are handed back, a line of JSON each.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any

import httpx

from activities._captured import CapturedCall, SentRequest, current
from activities._handed_over import handed_over
from activities._script import ScriptedReply, reply_to
from runtime.archive.forms import Capture
from runtime.base.digests import canonical_json
from runtime.base.errors import InputError
from runtime.base.spec.models import SCRIPTED
from runtime.projection.replies import SCRIPT_CLOSE, SCRIPT_OPEN, TOOL_ARGUMENT, TOOL_NAME

PROVIDER = SCRIPTED.removesuffix("/")
PIECE = 64
"""Characters of a reply in one piece of its stream."""

Delta = dict[str, Any]


class ScriptedError(Exception):
    """An error response of the scripted provider, with the status that litellm looks for."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status_code = status
        self.message = message


async def pieces(
    file: str, messages: Sequence[dict[str, Any]], options: dict[str, Any]
) -> AsyncGenerator[Delta, None]:
    """The reply as deltas in OpenAI's form; the last has only ``finish_reason``.

    The request is archived first.

    Raises:
        ScriptedError: the script says so, or it has no usable reply (status 400, which is not
        retried). httpx.ReadError: the script says that the stream breaks off.
        Silence: the script's delay is longer than the call's limits allow.
    """
    captured = current.get()
    if captured is None:
        raise ScriptedError(400, "a scripted model is called by the model activity only")
    request = {"model": f"{SCRIPTED}{file}", "messages": messages, **options}

    def answered() -> ScriptedReply:
        # Archived before the script is asked, as a request is before it is sent.
        body = handed_over(captured.job, request)
        captured.sending_now(SentRequest(Capture.HANDED_OVER, body))
        return reply_to(file, messages, captured.turn)

    try:
        reply = await asyncio.to_thread(answered)
    except InputError as error:
        raise _refusal(captured, 400, str(error), {}) from error
    if reply.delay:
        async with captured.patience():
            await asyncio.sleep(reply.delay)
    # By Temporal's count, so that the reply to a retry does not depend on which process gives it.
    bad = captured.temporal_attempt <= reply.times
    if bad and reply.fail is not None:
        wait = (
            {} if reply.fail.retry_after is None else {"retry-after": f"{reply.fail.retry_after:g}"}
        )
        raise _refusal(captured, reply.fail.status, reply.fail.message, wait)
    captured.answering(200, {})
    left = reply.break_after if bad and reply.break_after is not None else math.inf
    for delta in _deltas(reply, captured.turn - 1, native=bool(options.get("tools"))):
        left -= _characters(delta)
        if left < 0 or ("finish_reason" in delta and left < math.inf):
            captured.failure = httpx.ReadError("the connection was closed in mid-stream")
            raise captured.failure
        captured.received(canonical_json(delta) + b"\n")
        yield delta


def _deltas(reply: ScriptedReply, number: int, *, native: bool) -> Iterator[Delta]:
    calls = [(call.name, call.arguments) for call in reply.calls]
    text = reply.text
    if reply.code is not None and native:
        calls.insert(
            0,
            (
                TOOL_NAME,
                canonical_json({TOOL_ARGUMENT: reply.code}).decode("utf-8", "surrogatepass"),
            ),
        )
    elif reply.code is not None:
        text = f"{text}\n\n{SCRIPT_OPEN}\n{reply.code}\n{SCRIPT_CLOSE}".lstrip("\n")
    if reply.thinking is not None:
        yield {
            "thinking_blocks": [
                {"type": "thinking", "thinking": reply.thinking, "signature": "scripted"}
            ]
        }
    if reply.refusal is not None:
        yield {"refusal": reply.refusal}
    for piece in _cut(text):
        yield {"content": piece}
    for index, (name, arguments) in enumerate(calls):
        id = f"call_{number}" if index == 0 else f"call_{number}_{index}"
        yield {"tool_calls": [_call(index, {"name": name, "arguments": ""}, id=id)]}
        for piece in _cut(arguments):
            yield {"tool_calls": [_call(index, {"arguments": piece})]}
    yield {"finish_reason": reply.finish_reason or ("tool_calls" if calls else "stop")}


def _call(index: int, function: dict[str, str], **head: str) -> Delta:
    return {"index": index, "type": "function", "function": function, **head}


def _cut(text: str) -> Iterator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def _characters(delta: Delta) -> int:
    """How much of the reply's text or arguments a delta carries."""
    calls = delta.get("tool_calls", [])
    return len(delta.get("content", "")) + sum(len(call["function"]["arguments"]) for call in calls)


def _refusal(
    captured: CapturedCall, status: int, message: str, headers: dict[str, str]
) -> ScriptedError:
    """An error response, captured as one."""
    captured.answering(status, headers)
    captured.received(canonical_json({"error": {"message": message}}))
    return ScriptedError(status, message)
