"""A response of success that is no stream: a whole reply is taken, a page or a notice ends the
call with its words.
"""

import json
from typing import Any

import pytest
from gateway import Gateway, answering_in_bytes, job_at
from model_calls import KEY, RUN, STREAMING, Job, anthropic_server, openai_server, responses_server
from temporalio.exceptions import ApplicationError

from runtime.archive.requests import RequestReader
from tests.servers.provider_server import Protocol, ProviderServer, ServerReply

pytestmark = pytest.mark.usefixtures("litellm")

PAGE = """<!DOCTYPE html>
<html><head><title>Sign in &amp; go on</title><style>body {{ color: red }}</style><script>var a = "<b>";</script></head>
<body><h1>Single sign-on</h1><p>Your session of {key} has ended.</p><p>{rest}</p></body></html>"""

REPLY = ServerReply(text="Hello there, here it is. ", code="x = 'é'")
PROTOCOLS = pytest.mark.parametrize(
    ("make", "name"),
    [
        (openai_server, "openai/gpt-4o"),
        (openai_server, "hosted_vllm/some-model"),
        (openai_server, "openrouter/some/model"),
        (anthropic_server, "anthropic/claude-sonnet-4-5"),
        (responses_server, "openai/gpt-5-codex"),
    ],
    ids=["openai", "vllm", "openrouter", "anthropic", "responses"],
)


def whole(make: Any, reply: ServerReply) -> bytes:
    """The reply as one JSON object of the protocol."""
    server: ProviderServer = make(lambda _m, _n: "")
    protocol: Protocol = server.protocol
    return json.dumps(protocol.whole(reply, {"model": "some-model"}, 1)).encode()


@PROTOCOLS
@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream", "text/plain"])
async def test_a_whole_reply_is_taken_for_a_stream(make: Any, name: str, content_type: str) -> None:
    """A gateway that ignores ``stream``: text, call, usage and the exact bytes are the reply's,
    after one request.
    """
    gateway = Gateway(whole(make, REPLY), content_type)
    async with gateway as address:
        job = job_at(address, name)
        reply = await job.take_turn()
    assert reply.text == REPLY.text
    assert [json.loads(call.arguments) for call in reply.tool_calls] == [{"code": REPLY.code}]
    assert reply.finish_reason == "tool_calls"
    assert (reply.usage.prompt, reply.usage.completion, reply.usage.reported) == (1000, 4, True)
    assert [job.archive.wire_request(RUN, 1)] == gateway.requests
    assert job.archive.wire_response(RUN, 1) == gateway.body
    assert len(job.archive.attempts(RUN, 1)) == 1


@PROTOCOLS
@pytest.mark.parametrize(
    "body", [b"data: %b\n\ndata: [DONE]\n\n", b": ok\r\nevent: message\r\ndata:%b"]
)
async def test_a_whole_reply_may_be_the_one_event_of_a_stream(
    make: Any, name: str, body: bytes
) -> None:
    """It was the empty reply of a model, or ended the job, each time that it was paid."""
    gateway = Gateway(body % whole(make, REPLY), "text/event-stream")
    async with gateway as address:
        job = job_at(address, name)
        reply = await job.take_turn()
    assert reply.text == REPLY.text
    assert [json.loads(call.arguments) for call in reply.tool_calls] == [{"code": REPLY.code}]
    assert (reply.usage.prompt, reply.usage.completion, reply.usage.reported) == (1000, 4, True)
    assert job.archive.wire_response(RUN, 1) == gateway.body
    assert len(gateway.requests) == 1


async def test_a_whole_reply_behind_its_pieces_is_not_heard_twice() -> None:
    """Some servers end a stream with all that was said."""
    said = json.dumps({**_CHUNK, "choices": [{"index": 0, "delta": {"content": REPLY.text}}]})
    body = b"data: %b\n\ndata: %b\n\n" % (said.encode(), whole(openai_server, REPLY))
    async with Gateway(body, "text/event-stream") as address:
        reply = await job_at(address, "openai/gpt-4o").take_turn()
    assert reply.text == REPLY.text


@STREAMING
@PROTOCOLS
async def test_a_page_ends_the_call_with_its_words(make: Any, name: str, stream: bool) -> None:
    """A login page is no reply and is not asked for again; its text is told, without markup,
    scripts and secrets.
    """
    page = PAGE.format(key=KEY, rest="more " * 200).encode()
    gateway = Gateway(page, "text/html; charset=utf-8")
    async with gateway as address:
        job = job_at(address, name, stream=stream)
        with pytest.raises(ApplicationError) as failed:
            await job.take_turn()
    assert (failed.value.type, failed.value.non_retryable) == ("NotAModel", True)
    assert failed.value.message.startswith(
        "a web page answered, not a model: Sign in & go on Single sign-on Your session of "
    )
    assert KEY not in failed.value.message
    assert "color" not in failed.value.message
    assert len(failed.value.message) < 400
    assert len(gateway.requests) == 1
    (attempt,) = job.archive.attempts(RUN, 1)
    assert RequestReader(job.store.get).wire(attempt.key) == gateway.requests[0]
    assert b"Single sign-on" in job.archive.failed_response(attempt.key)


@STREAMING
@pytest.mark.parametrize(
    ("body", "kind", "final", "words"),
    [
        (
            b'{"status": "ok"}',
            "NotAModel",
            True,
            'the response is no reply of a model: {"status": "ok"}',
        ),
        (b"", "StreamBroken", False, "the response had status 200 and no content"),
        (b'{"error": {"message": "Upstream is busy."}}', "ServerError", False, "Upstream is busy."),
        (b'{"error": {"message": "Slow.", "code": 429}}', "RateLimitError", False, "Slow."),
        (b'[{"error": {"message": "Slow.", "code": 429}}]', "RateLimitError", False, "Slow."),
        (b'{"error": {"message": "Busy."}}\n{"error": {}}', "ServerError", False, "Busy."),
        (
            (
                b'{"error": {"message": "This model\'s maximum context length is 8192 tokens.",'
                b' "code": 400}}'
            ),
            "ContextWindowExceeded",
            True,
            "This model's maximum context length is 8192 tokens.",
        ),
    ],
    ids=["status", "empty", "error", "rate", "list", "lines", "window"],
)
async def test_what_is_no_reply_is_told(
    body: bytes, kind: str, final: bool, words: str, stream: bool
) -> None:
    """Another service's JSON ends the call; an error that came with status 200 is the error that it
    says, also in a list, as Google's are: that was an empty reply.
    """
    gateway = Gateway(body)
    async with gateway as address:
        with pytest.raises(ApplicationError) as failed:
            await job_at(address, "openai/gpt-4o", stream=stream).take_turn()
    assert (failed.value.type, failed.value.non_retryable, failed.value.message) == (
        kind,
        final,
        words,
    )
    assert len(gateway.requests) == 1


@STREAMING
@pytest.mark.parametrize("name", ["openai/gpt-4o", "anthropic/claude-sonnet-4-5"])
@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (204, b"", "StreamBroken", "the response had status 204 and no content"),
        (202, b"<html>Queued", "NotAModel", "a web page answered, not a model: Queued"),
        (201, b'{"error": {"message": "Busy."}}', "ServerError", "Busy."),
    ],
    ids=["empty", "page", "error"],
)
async def test_what_is_no_reply_is_told_by_any_status_of_success(
    name: str, stream: bool, status: int, body: bytes, kind: str, words: str
) -> None:
    """It is no empty reply of the model."""
    async with Gateway(body, status=status) as address:
        with pytest.raises(ApplicationError) as failed:
            await job_at(address, name, stream=stream).take_turn()
    assert (failed.value.type, failed.value.message) == (kind, words)


@STREAMING
@pytest.mark.parametrize("name", ["openai/gpt-4o", "anthropic/claude-sonnet-4-5"])
@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (204, b"", "StreamBroken", "the response had status 204 and no content"),
        (200, b"<html>Sign in", "NotAModel", "a web page answered, not a model: Sign in"),
        (200, b'{"error": {"message": "Busy."}}', "ServerError", "Busy."),
    ],
    ids=["empty", "page", "error"],
)
async def test_a_response_without_a_header_is_looked_at_as_others_are(
    name: str, stream: bool, status: int, body: bytes, kind: str, words: str
) -> None:
    """It was the model's empty reply, whatever stood in it."""
    async with answering_in_bytes(b"HTTP/1.1 %d \r\n\r\n%b" % (status, body)) as address:
        with pytest.raises(ApplicationError) as failed:
            await job_at(address, name, stream=stream).take_turn()
    assert (failed.value.type, failed.value.message) == (kind, words)


@pytest.mark.parametrize("name", ["openai/gpt-4o", "aiohttp_openai/gpt-4o", "openai/gpt-5-codex"])
@STREAMING
async def test_a_byte_order_mark_hides_no_whole_reply(name: str, stream: bool) -> None:
    """It was the model's empty reply, or one that could not be read, each time that it was paid."""
    make = responses_server if "codex" in name else openai_server
    body = b"\xef\xbb\xbf" + whole(make, REPLY)
    async with Gateway(body) as address:
        job = job_at(address, name, stream=stream)
        reply = await job.take_turn()
    assert (reply.text, reply.tool_calls[0].name) == (REPLY.text, "python")
    assert reply.response_id
    assert reply.usage.reported
    assert job.archive.wire_response(RUN, 1) == body


@pytest.mark.parametrize("name", ["openai/gpt-4o", "hosted_vllm/some-model"])
async def test_an_error_beside_what_litellm_does_not_read_is_told(name: str) -> None:
    """A gateway that answers so when the provider behind it fails, with what there was of the
    reply: the job was ended by it, and told of the beginning of the JSON.
    """
    said = json.loads(whole(openai_server, REPLY))
    body = json.dumps({**said, "error": {"message": "The provider is away.", "code": 502}})
    async with Gateway(body.encode()) as address:
        with pytest.raises(ApplicationError) as failed:
            await job_at(address, name).take_turn()
    assert (failed.value.type, failed.value.non_retryable, failed.value.message) == (
        "ServerError",
        False,
        "The provider is away.",
    )


CUT = "the response is no JSON that can be read: it may have been cut off"
DEEP = b'{"choices": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"
"""Python reads it from 3.12 on."""
DEEPER = b'{"error": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"
"""Python 3.14 reads it, and cannot write it."""


@pytest.mark.parametrize(
    "name",
    [
        *("openai/gpt-4o", "anthropic/claude-sonnet-4-5", "aiohttp_openai/gpt-4o"),
        "openai/gpt-5-pro",
    ],
)
@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (b"OK", "NotAModel", "the response is no reply of a model: OK"),
        (b"null", "NotAModel", "the response is no reply of a model: null"),
        (b"[1, 2]", "NotAModel", "the response is no reply of a model: [1, 2]"),
        (whole(openai_server, REPLY)[:-9], "StreamBroken", CUT),
        (DEEP, "NotAModel", f"the response is no reply of a model: {DEEP[:300].decode()}…"),
        (DEEPER, "NotAModel", f"the response is no reply of a model: {DEEPER[:300].decode()}…"),
    ],
    ids=["text", "null", "list", "cut", "deep", "deeper"],
)
async def test_what_came_in_place_of_a_stream_and_is_no_reply_is_told(
    name: str, body: bytes, kind: str, words: str
) -> None:
    """litellm reads an empty reply in it, which was executed; or it fails in words of Python's, and
    the call was made again and again.
    """
    async with Gateway(body) as address:
        with pytest.raises(ApplicationError) as failed:
            await job_at(address, name).take_turn()
    assert (failed.value.type, failed.value.message) == (kind, words)


@PROTOCOLS
async def test_a_whole_reply_of_another_status_of_success_is_taken(make: Any, name: str) -> None:
    """Also where a stream was asked for."""
    async with Gateway(whole(make, REPLY), status=201) as address:
        reply = await job_at(address, name).take_turn()
    assert (reply.text, reply.usage.reported) == (REPLY.text, True)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("openai/gpt-4o", b": keep-alive\r\n\r\nevent: end\r\ndata: [DONE]\r\n\r\n"),
        ("hosted_vllm/some-model", b"data:\n\ndata: [DONE]"),
        (
            "anthropic/claude-sonnet-4-5",
            b'event: ping\ndata: {"type": "ping"}\n\n'
            b'event: message_stop\ndata: {"type": "message_stop"}\n\n',
        ),
    ],
    ids=["openai", "vllm", "anthropic"],
)
async def test_a_stream_that_ends_and_tells_nothing_is_no_reply(name: str, body: bytes) -> None:
    """It is asked for again: the model would be told that it had said nothing."""
    gateway = Gateway(body, "text/event-stream")
    async with gateway as address:
        job = job_at(address, name)
        with pytest.raises(ApplicationError) as failed:
            await job.take_turn()
    assert (failed.value.type, failed.value.non_retryable, failed.value.message) == (
        "StreamBroken",
        False,
        "the stream ended and had no event of a reply",
    )
    (attempt,) = job.archive.attempts(RUN, 1)
    assert job.archive.failed_response(attempt.key) == body


def _events(*events: dict[str, Any], last: str = "") -> bytes:
    return b"".join(
        (f"event: {event['type']}\n" if "type" in event else "").encode()
        + b"data: "
        + json.dumps(event).encode()
        + b"\n\n"
        for event in events
    ) + (f"data: {last}\n\n".encode() if last else b"")


_CHUNK = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m"}
_CUT = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": "length"}
_INCOMPLETE = {
    "id": "r",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "incomplete",
    "incomplete_details": {"reason": "max_output_tokens"},
    "output": [{"type": "reasoning", "id": "rs", "summary": []}],
    "usage": {"input_tokens": 2000, "output_tokens": 30_000, "total_tokens": 32_000},
}
CUT_IN_THOUGHT = {
    "openai/gpt-4o": _events(
        {**_CHUNK, "choices": [_CUT]},
        {
            **_CHUNK,
            "choices": [],
            "usage": {"prompt_tokens": 2000, "completion_tokens": 30_000, "total_tokens": 32_000},
        },
        last="[DONE]",
    ),
    "anthropic/claude-sonnet-4-5": _events(
        {
            "type": "message_start",
            "message": {
                "id": "r",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [],
                "stop_reason": None,
                "usage": {"input_tokens": 2000, "output_tokens": 1},
            },
        },
        {
            "type": "message_delta",
            "delta": {"stop_reason": "max_tokens"},
            "usage": {"output_tokens": 30_000},
        },
        {"type": "message_stop"},
    ),
    "openai/gpt-5-codex": _events(
        {"type": "response.created", "response": {**_INCOMPLETE, "usage": None, "output": []}},
        {"type": "response.incomplete", "response": _INCOMPLETE},
    ),
}
"""Streams of models that thought until they were cut off, by the models' names."""


@pytest.mark.parametrize("name", CUT_IN_THOUGHT)
async def test_what_a_stream_without_a_reply_cost_is_booked(name: str) -> None:
    """And why it ended counts: the model thought, which may cost more than any reply."""
    gateway = Gateway(CUT_IN_THOUGHT[name], "text/event-stream")
    async with gateway as address:
        reply = await job_at(address, name).take_turn()
    assert (reply.text, reply.tool_calls, reply.finish_reason) == ("", (), "length")
    assert (reply.usage.prompt, reply.usage.completion) == (2000, 30_000)
    assert reply.usage.reported
    assert len(gateway.requests) == 1


async def test_an_empty_reply_of_a_model_stays_one() -> None:
    """A whole reply without text and calls is the model's own, which the job tells the model of."""
    gateway = Gateway(whole(openai_server, ServerReply(text="")))
    async with gateway as address:
        reply = await job_at(address, "openai/gpt-4o").take_turn()
    assert (reply.text, reply.tool_calls, reply.finish_reason) == ("", (), "stop")
    assert reply.usage.prompt == 1000


async def test_a_missing_package_ends_the_call_by_name() -> None:
    """Vertex needs a package that litellm does not bring: nothing is sent, and what to install is
    said.
    """
    job = Job({"name": "vertex_ai/gemini-2.5-pro"})
    with pytest.raises(ApplicationError) as failed:
        await job.take_turn()
    assert (failed.value.type, failed.value.non_retryable) == ("MissingPackage", True)
    assert (
        failed.value.message
        == "this model needs the package google-auth, which is not installed where the worker runs"
        " (No module named 'google.auth')"
    )


OPENAIS = _events(
    {
        "id": "r",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hello."}}],
    },
    {
        "id": "r",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
    },
    last="[DONE]",
)
ANTHROPICS = _events(
    {
        "type": "message_start",
        "message": {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [],
            "usage": {"input_tokens": 3, "output_tokens": 1},
        },
    },
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    },
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": "Hello."},
    },
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
)
OLLAMAS = (
    b'{"model": "m", "message": {"role": "assistant", "content": "Hello."}, "done": false}\n'
    b'{"model": "m", "message": {"role": "assistant", "content": ""}, "done": true}\n'
)


@pytest.mark.parametrize(
    ("name", "provider", "body"),
    [
        ("anthropic/claude-sonnet-4-5", "anthropic", OPENAIS),
        ("gemini/gemini-2.5-pro", "gemini", OPENAIS),
        ("openai/gpt-4o", "openai", ANTHROPICS),
        ("mistral/mistral-large-latest", "openai", ANTHROPICS),
        ("openai/gpt-4o", "openai", OLLAMAS),
    ],
    ids=["anthropic", "gemini", "openai", "mistral", "lines"],
)
async def test_a_stream_of_another_protocol_is_no_reply(
    name: str, provider: str, body: bytes
) -> None:
    """litellm finds nothing in it: the model was told that it had said nothing, turn by turn."""
    kind = "application/x-ndjson" if body == OLLAMAS else "text/event-stream"
    async with Gateway(body, kind) as address:
        job = job_at(address, name)
        with pytest.raises(ApplicationError) as failed:
            await job.take_turn()
    quoted = " ".join(body.decode().split())
    assert (failed.value.type, failed.value.non_retryable, failed.value.message) == (
        "NotAModel",
        True,
        f"the stream is not as models of `{provider}` send it; if the endpoint speaks another"
        " provider's protocol, the model's name must begin with that:"
        f" {quoted if len(quoted) <= 300 else quoted[:300] + '…'}",
    )
    (attempt,) = job.archive.attempts(RUN, 1)
    assert job.archive.failed_response(attempt.key) == body


async def test_an_empty_stream_of_a_model_is_a_reply() -> None:
    """One that says why it ended, and nothing else, is the model's own."""
    body = (
        b'data: {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m",'
        b' "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    )
    gateway = Gateway(body, "text/event-stream")
    async with gateway as address:
        reply = await job_at(address, "openai/gpt-4o").take_turn()
    assert (reply.text, reply.tool_calls, reply.finish_reason) == ("", (), "stop")
