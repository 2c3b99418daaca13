"""A local server of the protocols that providers speak beside OpenAI's and Anthropic's, each with
one reply.

The reply says ``SAID`` and calls ``python`` with ``ARGUMENTS`` where the protocol knows calls.
"""

from __future__ import annotations

import asyncio
import binascii
import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Queue
from threading import Thread
from typing import Any

from aiohttp import web

SAID = "Hello é. "
ARGUMENTS = {"code": "x = 'é'"}
PROMPT_TOKENS, REPLY_TOKENS = 70, 7


@dataclass
class ForeignServer:
    """Serves each path by its last part; ``exchanges`` are the requests for replies and what was
    sent back.
    """

    exchanges: list[tuple[bytes, bytes]] = field(default_factory=list)

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Its address, until the end of the block.

        A loop of its own: litellm asks Ollama without letting the caller's run.
        """
        address: Queue[str] = Queue()
        loop = asyncio.new_event_loop()

        async def serve() -> None:
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", self._answer)
            runner = web.AppRunner(app, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            address.put(f"http://127.0.0.1:{runner.addresses[0][1]}")
            try:
                await stop.wait()
            finally:
                await runner.cleanup()

        stop = asyncio.Event()
        thread = Thread(target=loop.run_until_complete, args=(serve(),))
        thread.start()
        try:
            yield address.get(timeout=60)
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join()
            loop.close()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        last = request.path.replace(":", "/").rpartition("/")[2]
        if last == "show":
            return web.json_response({"error": "no such model"}, status=404)
        if (
            last == "completions"
            and "/chat/" not in request.path
            and "/models/" not in request.path
        ):
            last = "texts"
        body = await request.read()
        content_type, pieces = _REPLIES[last]
        response = web.StreamResponse(headers={"content-type": content_type})
        response.enable_chunked_encoding()
        await response.prepare(request)
        sent = b""
        for piece in pieces(json.loads(body)):
            sent += piece
            await response.write(piece)
        # The end of a chunked body comes with the return: whoever has read it finds the exchange
        # noted.
        self.exchanges.append((body, sent))
        return response


def _lines(*values: dict[str, Any]) -> list[bytes]:
    return [json.dumps(value).encode() + b"\n" for value in values]


def _data(*values: dict[str, Any]) -> list[bytes]:
    return [b"data: " + line + b"\n" for line in _lines(*values)]


def _gemini(_asked: dict[str, Any]) -> list[bytes]:
    usage = {
        "promptTokenCount": PROMPT_TOKENS,
        "candidatesTokenCount": REPLY_TOKENS,
        "totalTokenCount": 77,
    }
    call = {"functionCall": {"name": "python", "args": ARGUMENTS}}
    first = {"candidates": [{"content": {"role": "model", "parts": [{"text": SAID}]}, "index": 0}]}
    last = {"content": {"role": "model", "parts": [call]}, "finishReason": "STOP", "index": 0}
    return _data(first, {"candidates": [last], "usageMetadata": usage})


def _ollama_chat(_asked: dict[str, Any]) -> list[bytes]:
    call = {"function": {"name": "python", "arguments": ARGUMENTS}}
    counts = {"prompt_eval_count": PROMPT_TOKENS, "eval_count": REPLY_TOKENS}
    head = {"model": "m", "created_at": "2026-01-01T00:00:00Z"}
    return _lines(
        {**head, "message": {"role": "assistant", "content": SAID}, "done": False},
        {
            **head,
            "message": {"role": "assistant", "content": "", "tool_calls": [call]},
            "done": False,
        },
        {
            **head,
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": "stop",
            **counts,
        },
    )


def _ollama_generate(_asked: dict[str, Any]) -> list[bytes]:
    counts = {"prompt_eval_count": PROMPT_TOKENS, "eval_count": REPLY_TOKENS}
    return _lines(
        {"model": "m", "response": SAID, "done": False},
        {"model": "m", "response": "", "done": True, "done_reason": "stop", **counts},
    )


def _completions(asked: dict[str, Any]) -> list[bytes]:
    usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": REPLY_TOKENS, "total_tokens": 77}
    head = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": asked["model"]}
    return [
        *_data(
            {
                **head,
                "choices": [{"text": SAID, "index": 0, "logprobs": None, "finish_reason": None}],
            },
            {
                **head,
                "choices": [{"text": "", "index": 0, "logprobs": None, "finish_reason": "stop"}],
            },
            {**head, "choices": [], "usage": usage},
        ),
        b"data: [DONE]\n\n",
    ]


def _chat(asked: dict[str, Any]) -> list[bytes]:
    usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": REPLY_TOKENS, "total_tokens": 77}
    call = {
        "index": 0,
        "id": "call_1",
        "type": "function",
        "function": {"name": "python", "arguments": ""},
    }
    part = {"index": 0, "function": {"arguments": json.dumps(ARGUMENTS)}}
    head = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": asked.get("model", "m"),
    }
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": SAID},
        {"tool_calls": [call]},
        {"tool_calls": [part]},
    ]
    chunks = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    end = {
        **head,
        "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}],
        "usage": usage,
    }
    return [line + b"\n" for line in _data(*chunks, end)] + [b"data: [DONE]\n\n"]


def _bedrock(_asked: dict[str, Any]) -> Iterator[bytes]:
    use = {"toolUseId": "tooluse_1", "name": "python"}
    yield _frame("messageStart", {"role": "assistant"})
    yield _frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": SAID}})
    yield _frame("contentBlockStop", {"contentBlockIndex": 0})
    yield _frame("contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": use}})
    delta = {"toolUse": {"input": json.dumps(ARGUMENTS)}}
    yield _frame("contentBlockDelta", {"contentBlockIndex": 1, "delta": delta})
    yield _frame("contentBlockStop", {"contentBlockIndex": 1})
    yield _frame("messageStop", {"stopReason": "tool_use"})
    usage = {"inputTokens": PROMPT_TOKENS, "outputTokens": REPLY_TOKENS, "totalTokens": 77}
    yield _frame("metadata", {"usage": usage, "metrics": {"latencyMs": 1}})


def _frame(kind: str, payload: dict[str, Any]) -> bytes:
    """One message of Amazon's binary event stream (application/vnd.amazon.eventstream)."""
    named = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        bytes([len(name)])
        + name.encode()
        + b"\x07"
        + struct.pack("!H", len(value))
        + value.encode()
        for name, value in named.items()
    )
    body = json.dumps(payload).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(body), len(headers))
    message = prelude + struct.pack("!I", binascii.crc32(prelude)) + headers + body
    return message + struct.pack("!I", binascii.crc32(message))


_EVENTS = "text/event-stream"
_REPLIES: dict[str, tuple[str, Any]] = {
    "streamGenerateContent": (_EVENTS, _gemini),
    "chat": ("application/x-ndjson", _ollama_chat),
    "generate": ("application/x-ndjson", _ollama_generate),
    "completions": (_EVENTS, _chat),
    "texts": (_EVENTS, _completions),
    "converse-stream": ("application/vnd.amazon.eventstream", _bedrock),
}
