"""A local server of OpenAI's Responses API.

``python -m tests.servers.responses_server --port 0 --policy FILE --log DIR`` prints its address, to
which ``/v1`` is added for an ``api_base``. A policy is given the request's ``input`` items, after
one of the system for its ``instructions``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.servers.provider_server import PIECE, Protocol, ServerReply, calls_of, main, pieces

_CUT_OFF = {"length": "max_output_tokens", "content_filter": "content_filter"}


class ResponsesProtocol(Protocol):
    """Responses, whole and streamed, with reasoning items (a reply's ``blocks``), messages and
    function calls.
    """

    def messages(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        system = (
            [{"role": "system", "content": asked["instructions"]}]
            if asked.get("instructions")
            else []
        )
        return [*system, *asked["input"]]

    def whole(self, reply: ServerReply, asked: dict[str, Any], number: int) -> dict[str, Any]:
        return self._response(reply, asked, number, self._items(reply, number), self._status(reply))

    def events(
        self, reply: ServerReply, asked: dict[str, Any], number: int
    ) -> Iterator[tuple[bytes, int]]:
        begun = self._response(reply, asked, number, [], "in_progress")
        yield _event("response.created", response=begun), 0
        yield _event("response.in_progress", response=begun), 0
        for index, item in enumerate(self._items(reply, number)):
            yield _event("response.output_item.added", output_index=index, item=_opened(item)), 0
            place = {"item_id": item["id"], "output_index": index}
            for kind, at, text in _texts(item):
                for piece in pieces(text):
                    yield _event(f"{kind}.delta", **place, **at, delta=piece), len(piece)
            yield _event("response.output_item.done", output_index=index, item=item), 0

    def endings(self, reply: ServerReply, asked: dict[str, Any], number: int) -> Iterator[bytes]:
        whole = self.whole(reply, asked, number)
        yield _event(f"response.{whole['status']}", response=whole)

    def error(self, kind: str, message: str) -> dict[str, Any]:
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}

    def error_event(self, error: dict[str, Any]) -> bytes:
        failed = {
            "id": "resp_0",
            "object": "response",
            "created_at": 1,
            "model": "m",
            "output": [],
            "status": "failed",
        }
        code = error.get("code") or error["type"]
        return _event(
            "response.failed",
            response={**failed, "error": {"code": code, "message": error["message"]}},
        )

    def _response(
        self,
        reply: ServerReply,
        asked: dict[str, Any],
        number: int,
        items: list[dict[str, Any]],
        status: str,
    ) -> dict[str, Any]:
        why = {"reason": _CUT_OFF[reply.finish_reason or ""]} if status == "incomplete" else None
        return {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1_700_000_000,
            "model": asked["model"],
            "status": status,
            "error": None,
            "incomplete_details": why,
            "output": items,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": None if status == "in_progress" else self._usage(reply),
        }

    def _items(self, reply: ServerReply, number: int) -> list[dict[str, Any]]:
        items = [
            {"type": "reasoning", "id": f"rs_{number}_{i}", **block}
            for i, block in enumerate(reply.blocks)
        ]
        if reply.text or reply.refusal:
            part = {"type": "output_text", "text": reply.text, "annotations": []}
            refused = {"type": "refusal", "refusal": reply.refusal}
            items.append(
                {
                    "type": "message",
                    "id": f"msg_{number}",
                    "role": "assistant",
                    "status": "completed",
                    "content": [part] if reply.text else [refused],
                }
            )
        for index, (id, name, arguments) in enumerate(calls_of(reply, number, "call")):
            call = {"type": "function_call", "id": f"fc_{number}_{index}", "status": "completed"}
            items.append({**call, "call_id": id, "name": name, "arguments": arguments})
        return items

    def _status(self, reply: ServerReply) -> str:
        return "incomplete" if reply.finish_reason in _CUT_OFF else "completed"

    def _usage(self, reply: ServerReply) -> Any:
        output = len(reply.text) // PIECE + 1
        return (
            reply.usage
            if reply.usage is not None
            else {
                "input_tokens": 1000,
                "input_tokens_details": {"cached_tokens": 512},
                "output_tokens": output,
                "output_tokens_details": {"reasoning_tokens": 1},
                "total_tokens": 1000 + output,
            }
        )


def _opened(item: dict[str, Any]) -> dict[str, Any]:
    """An item as a stream opens it, without what its deltas bring."""
    match item["type"]:
        case "function_call":
            return {**item, "arguments": "", "status": "in_progress"}
        case "message":
            return {**item, "content": [], "status": "in_progress"}
        case _:
            return {**item, "summary": []}


def _texts(item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The texts of an item: the event that brings each in pieces, where in the item it stands, and
    the text.
    """
    match item["type"]:
        case "function_call":
            yield "response.function_call_arguments", {}, item["arguments"]
        case "message":
            for index, part in enumerate(item["content"]):
                text = part.get("text")
                kind = "response.refusal" if text is None else "response.output_text"
                yield kind, {"content_index": index}, part["refusal"] if text is None else text
        case _:
            for index, part in enumerate(item["summary"]):
                yield "response.reasoning_summary_text", {"summary_index": index}, part["text"]


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, 'sequence_number': 0, **fields})}\n\n".encode()


if __name__ == "__main__":
    main(ResponsesProtocol())
