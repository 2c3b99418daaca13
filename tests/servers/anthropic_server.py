"""A local server of Anthropic's messages protocol.

``python -m tests.servers.anthropic_server --port 0 --policy FILE --log DIR`` prints its address,
which is the ``api_base``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.servers.provider_server import PIECE, Protocol, ServerReply, calls_of, main, pieces

_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}


class AnthropicProtocol(Protocol):
    """Messages, whole and streamed, with thinking blocks and tool use."""

    def messages(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        system = [{"role": "system", "content": asked["system"]}] if asked.get("system") else []
        return [*system, *asked["messages"]]

    def whole(self, reply: ServerReply, asked: dict[str, Any], number: int) -> dict[str, Any]:
        head = self._head(reply, asked, number)
        stop = {"stop_reason": self._reason(reply), "stop_sequence": None}
        usage = head["usage"]
        if isinstance(usage, dict):
            usage = {**usage, "output_tokens": self._completion(reply)}
        return {**head, "content": self._blocks(reply, number), **stop, "usage": usage}

    def events(
        self, reply: ServerReply, asked: dict[str, Any], number: int
    ) -> Iterator[tuple[bytes, int]]:
        yield _event("message_start", message=self._head(reply, asked, number)), 0
        yield _event("ping"), 0
        for index, block in enumerate(self._blocks(reply, number)):
            start, deltas = _opened(block)
            yield _event("content_block_start", index=index, content_block=start), 0
            for delta, size in deltas:
                yield _event("content_block_delta", index=index, delta=delta), size
            yield _event("content_block_stop", index=index), 0

    def endings(self, reply: ServerReply, asked: dict[str, Any], number: int) -> Iterator[bytes]:
        delta = {"stop_reason": self._reason(reply), "stop_sequence": None}
        yield _event("message_delta", delta=delta, usage={"output_tokens": self._completion(reply)})
        yield _event("message_stop")

    def error(self, kind: str, message: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}

    def error_event(self, error: dict[str, Any]) -> bytes:
        return _event("error", error=error)

    def _head(self, reply: ServerReply, asked: dict[str, Any], number: int) -> dict[str, Any]:
        usage = (
            reply.usage
            if reply.usage is not None
            else {
                "input_tokens": 100,
                "cache_creation_input_tokens": 300,
                "cache_read_input_tokens": 600,
                "output_tokens": 1,
            }
        )
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": asked["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }

    def _blocks(self, reply: ServerReply, number: int) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = [dict(block) for block in reply.blocks]
        if reply.text:
            blocks.append({"type": "text", "text": reply.text})
        for id, name, arguments in calls_of(reply, number, "toolu"):
            blocks.append(
                {"type": "tool_use", "id": id, "name": name, "input": json.loads(arguments)}
            )
        return blocks

    def _reason(self, reply: ServerReply) -> str:
        if reply.finish_reason:
            return _REASONS.get(reply.finish_reason, reply.finish_reason)
        return "tool_use" if reply.code is not None or reply.calls else "end_turn"

    def _completion(self, reply: ServerReply) -> int:
        return len(reply.text) // PIECE + 1


def _opened(block: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[dict[str, Any], int]]]:
    """A block as a stream opens it, and the deltas that fill it."""
    match block:
        case {"type": "text", "text": text}:
            deltas = [({"type": "text_delta", "text": piece}, len(piece)) for piece in pieces(text)]
            return {"type": "text", "text": ""}, deltas
        case {"type": "thinking", "thinking": text, "signature": signature}:
            thoughts = [
                ({"type": "thinking_delta", "thinking": piece}, 0) for piece in pieces(text)
            ]
            signed = ({"type": "signature_delta", "signature": signature}, 0)
            return {"type": "thinking", "thinking": "", "signature": ""}, [*thoughts, signed]
        case {"type": "tool_use", "input": arguments}:
            text = json.dumps(arguments)
            deltas = [
                ({"type": "input_json_delta", "partial_json": piece}, len(piece))
                for piece in pieces(text)
            ]
            return {**block, "input": {}}, deltas
        case _:
            return block, []


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


if __name__ == "__main__":
    main(AnthropicProtocol())
