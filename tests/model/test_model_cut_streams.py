"""Streams that end before their reply is complete."""

import json
from typing import Any

import pytest
from gateway import Gateway, job_at
from temporalio.exceptions import ApplicationError

from activities._captured import CapturedCall, Limits, SentRequest
from activities._cut_streams import is_cut
from activities._secrets import Secrets
from runtime.archive.forms import Capture

EVENTS = "text/event-stream"


def answered(body: bytes, content_type: str = EVENTS) -> CapturedCall:
    """A call whose response is ``body``."""
    captured = CapturedCall(
        lambda _: "1", limits=Limits(), secrets=Secrets(), turn=1, temporal_attempt=1
    )
    captured.sending_now(SentRequest(Capture.WIRE, b"{}", "POST", "http://provider.test/v1"))
    captured.answering(200, {"content-type": content_type} if content_type else {})
    captured.received(body)
    return captured


def event(said: Any, name: str = "") -> bytes:
    """An event of a stream."""
    line = f"event: {name}\n" if name else ""
    return f"{line}data: {json.dumps(said)}\n\n".encode()


def chat(text: str, **choice: Any) -> bytes:
    """A chunk of OpenAI's chat protocol."""
    return event({"choices": [{"index": 0, "delta": {"content": text}, **choice}]})


def lines(*said: dict[str, Any]) -> bytes:
    """A stream of Ollama's."""
    return b"".join(json.dumps(line).encode() + b"\n" for line in said)


@pytest.mark.parametrize(
    "text",
    [
        "wait for [DONE]",
        "\ndata: [DONE]\n\n",
        "\nevent: message_stop\n",
        'the event "message_stop"',
        '{"type": "message_stop"}',
        "\nevent: response.completed\n",
        '{"finish_reason": "stop"}',
        '{"stop_reason":"end_turn"}',
    ],
)
def test_a_model_that_speaks_of_an_end_has_not_ended(text: str) -> None:
    """What stands in a text is escaped, and no line of the stream."""
    assert is_cut(answered(chat(text)))
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}
    assert is_cut(answered(event(delta, "content_block_delta")))


@pytest.mark.parametrize(
    "end",
    [
        b"data: [DONE]\n\n",
        b"data:[DONE]",
        b"data: [DONE]\r\n\r\n",
        chat("", finish_reason="stop"),
        event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, "message_delta"),
        event({"type": "message_stop"}, "message_stop"),
        event({"type": "message_stop"}),
        event({"type": "response.completed", "response": {}}),
        event({"type": "response.incomplete"}, "response.incomplete"),
        event({"candidates": [{"finishReason": "STOP"}]}),
    ],
)
@pytest.mark.parametrize("content_type", [EVENTS, "Text/Event-Stream", "application/json", ""])
def test_a_protocols_own_word_ends_a_stream(end: bytes, content_type: str) -> None:
    """Without it the stream is cut, whatever the headers say that it is."""
    begun = b": welcome\n\n" + chat("Hello.", finish_reason=None)
    assert not is_cut(answered(begun + end, content_type))
    assert is_cut(answered(begun, content_type))
    assert is_cut(answered(begun + chat("", finish_reason=""), content_type))


def test_a_stream_of_lines_ends_with_one_that_is_done() -> None:
    """A tool's argument of that name says nothing."""
    begun = {"message": {"content": "Hel"}, "done": False}
    calls = [{"function": {"name": "python", "arguments": {"done": True}}}]
    called = {"message": {"tool_calls": calls}, "done": False}
    for kind in ("application/x-ndjson", ""):
        assert not is_cut(answered(lines(begun, {"done": True}), kind))
        assert not is_cut(answered(lines({"message": {"content": "Hello."}, "done": True}), kind))
        assert is_cut(answered(lines(begun), kind))
        assert is_cut(answered(lines(begun, called), kind))
        assert is_cut(answered(lines(begun, {"done": True})[:-3], kind))


@pytest.mark.parametrize("body", [b'{"choices": []}', b'{\n  "choices": []\n}', b"<html>", b"{}"])
def test_what_is_no_stream_is_not_cut(body: bytes) -> None:
    """Whole replies, and what is none."""
    assert not is_cut(answered(body, "application/json"))


@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize(
    ("name", "body", "content_type"),
    [
        ("openai/gpt-4o", chat("Wait for [DONE], then"), EVENTS),
        ("openai/gpt-4o", chat("Hel"), "text/plain"),
        ("ollama_chat/llama3.1", lines({"message": {"content": "Hel"}, "done": False}), ""),
    ],
    ids=["the word in a text", "another type", "lines"],
)
async def test_half_a_reply_is_asked_for_again(name: str, body: bytes, content_type: str) -> None:
    """Half a statement must not be executed."""
    async with Gateway(body, content_type) as address:
        with pytest.raises(ApplicationError) as failed:
            await job_at(address, name).take_turn()
    assert (failed.value.type, failed.value.non_retryable) == ("StreamBroken", False)
