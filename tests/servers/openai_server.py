"""A local server of OpenAI's chat completions protocol.

``python -m tests.servers.openai_server --port 0 --policy FILE --log DIR`` prints its address, to
which ``/v1`` is added for an ``api_base``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.servers.provider_server import PIECE, Protocol, ServerReply, calls_of, main, pieces


class OpenAIProtocol(Protocol):
    """Chat completions, whole and streamed."""

    def messages(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        return list(asked["messages"])

    def whole(self, reply: ServerReply, asked: dict[str, Any], number: int) -> dict[str, Any]:
        message: dict[str, Any] = {
            "role": "assistant",
            "content": reply.text or None,
            "refusal": reply.refusal,
        }
        calls = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id, name, arguments in calls_of(reply, number, "call")
        ]
        if calls:
            message["tool_calls"] = calls
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": self._reason(reply),
        }
        return {
            **self._head(asked, number, "chat.completion"),
            "choices": [choice],
            "usage": self._usage(reply),
            **_tier(reply),
        }

    def events(
        self, reply: ServerReply, asked: dict[str, Any], number: int
    ) -> Iterator[tuple[bytes, int]]:
        yield self._event(asked, number, {"role": "assistant", "content": "", "refusal": None}), 0
        for piece in pieces(reply.refusal or ""):
            yield self._event(asked, number, {"refusal": piece}), 0
        for piece in pieces(reply.text):
            yield self._event(asked, number, {"content": piece}), len(piece)
        for index, (id, name, arguments) in enumerate(calls_of(reply, number, "call")):
            head = {
                "index": index,
                "id": id,
                "type": "function",
                "function": {"name": name, "arguments": ""},
            }
            yield self._event(asked, number, {"tool_calls": [head]}), 0
            for piece in pieces(arguments):
                part = {"index": index, "function": {"arguments": piece}}
                yield self._event(asked, number, {"tool_calls": [part]}), len(piece)

    def endings(self, reply: ServerReply, asked: dict[str, Any], number: int) -> Iterator[bytes]:
        yield self._event(asked, number, {}, self._reason(reply))
        if (asked.get("stream_options") or {}).get("include_usage"):
            head = self._head(asked, number, "chat.completion.chunk")
            yield _data({**head, "choices": [], "usage": self._usage(reply), **_tier(reply)})
        yield b"data: [DONE]\n\n"

    def error(self, kind: str, message: str) -> dict[str, Any]:
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}

    def error_event(self, error: dict[str, Any]) -> bytes:
        return _data({"error": error})

    def _head(self, asked: dict[str, Any], number: int, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{number}",
            "object": kind,
            "created": 1_700_000_000,
            "model": asked["model"],
        }

    def _event(
        self, asked: dict[str, Any], number: int, delta: dict[str, Any], reason: str | None = None
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return _data(
            {
                **self._head(asked, number, "chat.completion.chunk"),
                "choices": [choice],
                "usage": None,
            }
        )

    def _reason(self, reply: ServerReply) -> str:
        return reply.finish_reason or (
            "tool_calls" if reply.code is not None or reply.calls else "stop"
        )

    def _usage(self, reply: ServerReply) -> Any:
        completion = len(reply.text) // PIECE + 1
        return (
            reply.usage
            if reply.usage is not None
            else {
                "prompt_tokens": 1000,
                "completion_tokens": completion,
                "total_tokens": 1000 + completion,
                "prompt_tokens_details": {"cached_tokens": 512},
            }
        )


def _tier(reply: ServerReply) -> dict[str, str]:
    return {} if reply.service_tier is None else {"service_tier": reply.service_tier}


def _data(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


if __name__ == "__main__":
    main(OpenAIProtocol())
