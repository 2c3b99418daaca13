"""Streams that are not as their protocol has them."""

import json
from typing import Any

import pytest
from gateway import Gateway, job_at
from model_calls import KEY, RUN
from temporalio.exceptions import ApplicationError

from activities._merged_events import MergedEvents
from activities._model_turn import WITHHELD

pytestmark = pytest.mark.usefixtures("litellm")

EVENTS = "text/event-stream"
DONE = b"data: [DONE]\n\n"
BEGUN = {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}}
BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
ENDED = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}


def event(said: Any, name: str = "") -> bytes:
    """An event of a stream."""
    line = f"event: {name}\n" if name else ""
    return f"{line}data: {json.dumps(said)}\n\n".encode()


def chat(text: str | None, index: int = 0, reason: str | None = None) -> bytes:
    """A chunk of OpenAI's chat protocol."""
    choice = {"index": index, "delta": {"content": text}, "finish_reason": reason}
    return event({"id": "c", "object": "chat.completion.chunk", "choices": [choice]})


def messages(*said: dict[str, Any]) -> bytes:
    """Events of Anthropic's messages."""
    return b"".join(event(one, one["type"]) for one in said)


def text(said: str) -> dict[str, Any]:
    """A piece of a text in one."""
    return {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": said},
    }


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize(
    ("chunks", "reply"),
    [
        ([chat("x = "), chat("y = ", 1), chat("1"), chat("2", 1)], "x = 1"),
        ([chat("x = ", 1), chat("1", 1)], "x = 1"),
    ],
    ids=["two", "one by another number"],
)
async def test_of_two_choices_one_is_the_reply(chunks: list[bytes], reply: str, end: bytes) -> None:
    """One is asked for, and one statement is executed: no mixture of two."""
    last = b"".join(chat(None, index, "stop") for index in (0, 1))
    body = (b"".join(chunks) + last + DONE).replace(b"\n", end)
    async with Gateway(body, EVENTS) as address:
        got = await job_at(address, "openai/gpt-4o").take_turn()
    assert got.text == reply


async def test_a_byte_order_mark_hides_no_event() -> None:
    """Of what follows it, the first was left out."""
    body = b"\xef\xbb\xbf" + chat("x = ") + chat("1") + chat(None, reason="stop") + DONE
    async with Gateway(body, EVENTS) as address:
        got = await job_at(address, "openai/gpt-4o").take_turn()
    assert got.text == "x = 1"


def test_a_byte_order_mark_stands_at_the_beginning_alone() -> None:
    """Anywhere else it is a character of its text."""
    merged = MergedEvents(is_refused=True)
    assert merged.feed(b"\xef\xbb\xbfa") + merged.feed(b"\xef\xbb\xbfb") == b"a\xef\xbb\xbfb"


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("openai/gpt-4o", chat("Hel") + event({"message": "boom"}, "error") + DONE),
        ("openai/gpt-4o", chat("Hel") + b'error: {"code": 500, "message": "boom"}\n\n' + DONE),
        (
            "anthropic/claude-sonnet-4-5",
            messages(BEGUN, BLOCK, text("Hel"))
            + event({"error": {"message": "boom"}}, "error")
            + messages(ENDED, {"type": "message_stop"}),
        ),
        (
            "anthropic/claude-sonnet-4-5",
            messages(BEGUN, BLOCK, text("Hel"))
            + b"event: error\r\ndata: boom\r\n\r\n"
            + messages(ENDED),
        ),
    ],
    ids=["a name", "a field", "an error without a type", "words"],
)
async def test_an_error_in_a_stream_is_one_whatever_follows_it(name: str, body: bytes) -> None:
    """Half a statement was executed as the whole one: some gateways end such a stream as others."""
    async with Gateway(body, EVENTS) as address:
        with pytest.raises(ApplicationError, match="boom") as failed:
            await job_at(address, name).take_turn()
    assert (failed.value.type, failed.value.non_retryable) == ("ServerError", False)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("openai/gpt-4o", chat("Hel") + event({"error": "boom"}) + DONE),
        ("openai/gpt-4o", chat("Hel") + event({"error": "boom", "error_type": "generation"})),
        (
            "anthropic/claude-sonnet-4-5",
            messages(BEGUN, BLOCK, text("Hel"))
            + event({"type": "error", "error": {"type": "api_error", "message": "boom"}}, "error"),
        ),
    ],
    ids=["text", "text generation inference", "anthropic"],
)
async def test_an_error_in_a_stream_is_told_in_its_words(name: str, body: bytes) -> None:
    """litellm has words of its own in their place, or beside them."""
    async with Gateway(body, EVENTS) as address:
        with pytest.raises(ApplicationError) as failed:
            await job_at(address, name).take_turn()
    assert (failed.value.type, failed.value.message) == ("ServerError", "boom")


async def test_a_model_that_speaks_of_an_error_has_none() -> None:
    """What stands in a text is no line of the stream."""
    said = "\nevent: error\ndata: boom\n\nerror: boom"
    async with Gateway(chat(said) + chat(None, reason="stop") + DONE, EVENTS) as address:
        got = await job_at(address, "openai/gpt-4o").take_turn()
    assert got.text == said


READERS = pytest.mark.parametrize(
    "name", ["openai/gpt-4o", "hosted_vllm/m", "anthropic/claude-sonnet-4-5"]
)
"""Models whose streams are read by different parts of litellm."""


def told(name: str, *pieces: str) -> list[bytes]:
    """The events of a reply in the protocol of the model ``name``."""
    if name.startswith("anthropic"):
        said = [messages(one) for one in (BEGUN, BLOCK, *map(text, pieces), ENDED)]
        return [*said, messages({"type": "message_stop"})]
    return [*map(chat, pieces), chat(None, reason="stop"), DONE]


@READERS
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("word", ["[DONE]", "\u2028", "\x85"], ids=ascii)
async def test_a_reply_may_say_what_ends_streams_and_lines(
    name: str, word: str, end: bytes
) -> None:
    """Most of litellm's readers drop what has it: a statement with a hole in it was executed, or
    the model was told that it had said nothing. Put together, the pieces of a text have it oftener.
    """
    said = "before", f" {word[:1]}", f"{word[1:]} after"
    for pieces in (said, ("".join(said),)):
        body = b"".join(told(name, *pieces)).replace(json.dumps(word)[1:-1].encode(), word.encode())
        async with Gateway(body.replace(b"\n", end), EVENTS) as address:
            job = job_at(address, name)
            reply = await job.take_turn()
        assert reply.text == f"before {word} after"
        assert job.archive.wire_response(RUN, 1) == body.replace(b"\n", end)


@READERS
@pytest.mark.parametrize("ends", [b"", b"\n", b"\r\n"], ids=["nothing", "LF", "CRLF"])
async def test_a_last_event_counts_that_lacks_its_empty_line(name: str, ends: bytes) -> None:
    """What it said was left out, and the rest executed as the whole."""
    body = b"".join(told(name, "x = 1")[:-2])
    last = ENDED if name.startswith("anthropic") else None
    body += (messages(last) if last else chat("0", reason="stop")).rstrip() + ends
    async with Gateway(body, EVENTS) as address:
        reply = await job_at(address, name).take_turn()
    assert reply.text == ("x = 1" if last else "x = 10")


@READERS
@pytest.mark.parametrize(
    ("said", "spelled"),
    [
        (b"\n\n", b"\n"),
        (b"data: [DONE]", b'data: "[DONE]"'),
        (b"data: ", b"retry: 3000\n\n: ping\n\nid: 7\n\ndata:\n\ndata:"),
        (b'"object": "chat.completion.chunk",', b'\ndata: "object": "chat.completion.chunk",'),
    ],
    ids=["no empty line", "quoted end", "no data", "lines"],
)
async def test_a_reply_is_heard_whose_events_are_spelled_otherwise(
    name: str, said: bytes, spelled: bytes
) -> None:
    """It was empty, or the call failed in words of Python's, each time that it was paid."""
    body = b"".join(told(name, "x = ", "1")).replace(said, spelled)
    gateway = Gateway(body, EVENTS)
    async with gateway as address:
        reply = await job_at(address, name).take_turn()
    assert (reply.text, reply.finish_reason, len(gateway.requests)) == ("x = 1", "stop", 1)


PIECES = ("Your key is ", KEY[:9], KEY[9:], ".")
LINES = [json.dumps({"message": {"content": piece}, "done": False}) + "\n" for piece in PIECES]


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("hosted_vllm/m", b"".join(map(chat, PIECES)).replace(b"data: ", b"data:")),
        ("ollama_chat/llama3.1", "".join(LINES).encode()),
    ],
    ids=["no space", "lines"],
)
async def test_a_stream_that_broke_keeps_no_secret_however_it_is_spelled(
    name: str, body: bytes
) -> None:
    """Its pieces stood in the archive, from which they can be put together."""
    async with Gateway(body, EVENTS if b"data:" in body else "application/x-ndjson") as address:
        job = job_at(address, name)
        with pytest.raises(ApplicationError):
            await job.take_turn()
    (attempt,) = job.archive.attempts(RUN, 1)
    assert job.archive.failed_response(attempt.key) == WITHHELD


@pytest.mark.parametrize("space", [b" ", b""], ids=["space", "none"])
async def test_a_refusal_is_heard_however_it_is_spelled(space: bytes) -> None:
    """The model was told that it had said nothing."""
    choice = {"index": 0, "delta": {"refusal": "No."}, "finish_reason": None}
    body = event({"id": "c", "object": "chat.completion.chunk", "choices": [choice]})
    body = (body + chat(None, reason="stop") + DONE).replace(b"data: ", b"data:" + space)
    async with Gateway(body, EVENTS) as address:
        reply = await job_at(address, "openai/gpt-4o").take_turn()
    assert reply.refusal == "No."


@pytest.mark.parametrize(
    ("pieces", "code"),
    [((), "begun"), (("",), "begun"), (('{"code": ', '"told"}'), "told")],
    ids=["none", "an empty one", "some"],
)
async def test_a_call_may_begin_with_its_input(pieces: tuple[str, ...], code: str) -> None:
    """It was a call without arguments; where they follow, they count."""
    call = {"type": "tool_use", "id": "t", "name": "python", "input": {"code": "begun"}}
    said: list[dict[str, Any]] = [{"type": "content_block_start", "content_block": call}]
    for piece in pieces:
        delta = {"type": "input_json_delta", "partial_json": piece}
        said.append({"type": "content_block_delta", "delta": delta})
    said.append({"type": "content_block_stop"})
    body = messages(BEGUN, *({**one, "index": 0} for one in said), ENDED)
    async with Gateway(body, EVENTS) as address:
        reply = await job_at(address, "anthropic/claude-sonnet-4-5").take_turn()
    (called,) = reply.tool_calls
    assert json.loads(called.arguments) == {"code": code}
