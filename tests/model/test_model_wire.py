"""What the archive holds of a call is what the server received and sent, byte for byte."""

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from model_calls import (
    KEY,
    RUN,
    SERVERS,
    START,
    STREAMING,
    Job,
    Make,
    anthropic_server,
    attempt,
    model_at,
    openai_server,
    readable,
    run,
)

from activities._captured import CapturedCall, Limits, SentRequest, current
from activities._secrets import Secrets
from activities._wire import AsyncWire, SyncWire
from activities.contracts import ReplyForm
from runtime.archive.forms import Capture
from runtime.archive.stores import open_store
from runtime.base.tokens import encoding
from runtime.base.values import ToolCall, Usage
from runtime.projection.replies import parse_reply
from tests.servers.provider_server import PIECE

pytestmark = pytest.mark.usefixtures("litellm")

THINKING = (
    {"type": "thinking", "thinking": "First I look around.", "signature": "c2ln"},
    {"type": "redacted_thinking", "data": "b3BhcXVl"},
    {"type": "thinking", "thinking": "Then I stop.", "signature": "c2lnMg=="},
)


def talkative(messages: list[dict[str, Any]], number: int) -> dict[str, Any]:
    """A reply with everything: text that looks like markup, a statement, thinking."""
    return {
        "text": f"Reply {number}:  two  blanks,\n\n</s> <|im_end|> \U0001f642 and {'=' * 900}\n",
        "code": f"print({number}, 'é')",
        "blocks": THINKING,
    }


@SERVERS
@STREAMING
async def test_archived_bytes_are_the_wires(make: Make, stream: bool, tmp_path: Path) -> None:
    """Five turns: each request and each response in the archive equals what the server saw and
    sent.
    """
    async with make(talkative).serving() as server:
        job = Job(model_at(server, stream=stream), store=open_store(str(tmp_path / "archive")))
        replies = [await job.take_turn() for _ in range(5)]
        assert [e.request for e in server.exchanges] == [
            job.archive.wire_request(RUN, n) for n in range(1, 6)
        ]
        assert [e.response for e in server.exchanges] == [
            job.archive.wire_response(RUN, n) for n in range(1, 6)
        ]
    step = job.archive.step(replies[0].step)
    assert step.capture is Capture.WIRE
    assert step.status_code == 200
    assert sum(chunk.size for chunk in job.archive.chunks(RUN, 1)) == step.response_bytes
    assert KEY.encode() not in readable(job.store)


@SERVERS
@STREAMING
async def test_a_reply_is_complete(make: Make, stream: bool) -> None:
    """Text, native call and thinking arrive unaltered, however they were cut into pieces."""
    async with make(talkative).serving() as server:
        reply = await Job(model_at(server, stream=stream)).take_turn()
    wanted = talkative([], 1)
    assert reply.text == wanted["text"]
    assert [call.name for call in reply.tool_calls] == ["python"]
    assert reply.tool_calls[0].arguments in {
        '{"code": "print(1, \'\\u00e9\')"}',
        '{"code": "print(1, \'é\')"}',
    }
    assert reply.finish_reason == "tool_calls"
    completion = len(wanted["text"]) // PIECE + 1
    if make is anthropic_server:
        assert reply.thinking == THINKING
        assert reply.usage == Usage(
            prompt=1000, completion=completion, cache_read=600, cache_write=300
        )
    else:
        assert reply.usage == Usage(prompt=1000, completion=completion, cache_read=512)
    assert reply.cost_usd > 0
    count = encoding("cl100k_base").count
    thinking = sum(count(str(block.get("thinking", ""))) for block in reply.thinking)
    assert (
        reply.tokens
        == count(reply.text) + count("python") + count(reply.tool_calls[0].arguments) + thinking
    )


@SERVERS
async def test_a_reply_goes_back_as_it_came(make: Make) -> None:
    """The second request holds the first reply: its text, thinking first, call and result."""
    seen: list[list[dict[str, Any]]] = []

    def respond(messages: list[dict[str, Any]], number: int) -> dict[str, Any]:
        seen.append(messages)
        return talkative(messages, number)

    async with make(respond).serving() as server:
        job = Job(model_at(server))
        first = await job.take_turn()
        await job.take_turn()
    assistant = next(message for message in seen[1] if message["role"] == "assistant")
    if make is anthropic_server:
        kinds = [block["type"] for block in assistant["content"]]
        assert kinds == ["thinking", "redacted_thinking", "thinking", "text", "tool_use"]
        assert assistant["content"][:3] == list(THINKING)
        assert assistant["content"][4]["input"] == {"code": "print(1, 'é')"}
    else:
        assert assistant["content"] == first.text
        assert assistant["tool_calls"][0]["function"]["arguments"] == first.tool_calls[0].arguments


@pytest.mark.slow
@SERVERS
async def test_twenty_calls_at_a_time_are_kept_apart(make: Make) -> None:
    """Twenty jobs call at the same time over one client; each archive has its own job's bytes."""

    def respond(messages: list[dict[str, Any]], number: int) -> dict[str, Any]:
        return {"text": f"reply {number} " * 40, "delay": 0.2}

    async with make(respond).serving() as server:
        jobs = [Job(model_at(server, user=f"job-{n}"), name=f"job-{n}") for n in range(20)]
        replies = await asyncio.gather(*(job.take_turn() for job in jobs))
        sent = {e.request: e.response for e in server.exchanges}
    for job in jobs:
        assert sent.pop(job.archive.wire_request(RUN, 1)) == job.archive.wire_response(RUN, 1)
    assert len({reply.text for reply in replies}) == 20
    assert not sent


async def test_the_script_form_offers_no_tool() -> None:
    """In the form `script` the request has no tools."""
    async with openai_server(lambda _m, _n: "Hello.").serving() as server:
        reply = await Job(model_at(server), form=ReplyForm.SCRIPT).take_turn()
        assert b'"tools"' not in server.exchanges[0].request
    assert (reply.text, reply.tool_calls, reply.finish_reason) == ("Hello.", (), "stop")


async def test_calls_without_ids_of_their_own_get_some() -> None:
    """Two calls with one id between them, as some servers send them, can be answered apart."""
    reply = {
        "calls": [{"arguments": "{}"}, {"arguments": "[]"}, {"arguments": ""}],
        "ids": ["", "a", "a"],
    }
    async with openai_server(lambda _m, _n: reply).serving() as server:
        got = await Job(model_at(server, stream=False)).take_turn()
    assert [call.id for call in got.tool_calls] == ["call_1_0", "a", "call_1_2"]


@STREAMING
async def test_a_refusal_is_kept(stream: bool) -> None:
    """OpenAI's refusal, which is no content, is part of the reply."""
    async with openai_server(
        lambda _m, _n: {"refusal": "I cannot help with that."}
    ).serving() as server:
        reply = await Job(model_at(server, stream=stream)).take_turn()
    assert (reply.text, reply.refusal) == ("", "I cannot help with that.")


async def test_usage_is_counted_where_none_is_reported() -> None:
    """A server that reports no usage gets the counter's, marked so."""
    async with openai_server(
        lambda _m, _n: {"text": "Hello.", "usage": {"none": 0}}
    ).serving() as server:
        reply = await Job(model_at(server)).take_turn()
    assert reply.usage == Usage(prompt=sum(s.tokens for s in START), completion=2, reported=False)
    assert reply.cost_usd == pytest.approx(reply.usage.prompt * 2.5e-6 + 2 * 1e-5), (
        "an estimate has a price too"
    )


async def test_an_archived_turn_is_not_called_again() -> None:
    """A retry of a turn whose step is archived returns the archived reply, and no request is
    made.
    """
    async with openai_server(talkative).serving() as server:
        job = Job(model_at(server))
        call = job.call()
        first = await run(job.store, call, attempt(1))
        again = await run(job.store, call, attempt(2))
        assert len(server.exchanges) == 1
    assert again == first
    assert again.attempt == 1
    assert again.tool_calls == (
        ToolCall(id="call_1_0", name="python", arguments=again.tool_calls[0].arguments),
    )


@SERVERS
@STREAMING
async def test_half_a_character_is_no_text_and_no_statement(make: Make, stream: bool) -> None:
    """A lone surrogate, which JSON can spell and nothing else can hold, becomes U+FFFD in text and
    is refused in code. The next prompt, which has the call, can be sent.
    """
    async with make(
        lambda _m, _n: {"text": "a\ud800b", "code": "x = '\udfff'"}
    ).serving() as server:
        job = Job(model_at(server, stream=stream))
        reply = await job.take_turn()
        assert (await job.take_turn()).text == reply.text
    assert reply.text == "a\ufffdb"
    parsed = parse_reply(reply.text, reply.tool_calls, reply.finish_reason, None, "tool")
    assert parsed.statement is None
    assert parsed.problem is not None
    assert "lone surrogates" in parsed.problem
    assert b"\\ud800" in job.archive.wire_response(RUN, 1)


async def test_an_answer_too_large_for_the_history_is_shortened() -> None:
    """A reply of megabytes is archived exactly, and handed on as one that was cut off."""
    code = "x = 1\n" * 400_000
    async with openai_server(lambda _m, _n: {"text": "Big.", "code": code}).serving() as server:
        job = Job(model_at(server, stream=False))
        reply = await job.take_turn()
        assert job.archive.wire_response(RUN, 1) == server.exchanges[0].response
    assert (reply.text, reply.tool_calls, reply.finish_reason) == ("Big.", (), "length")


async def test_a_synchronous_call_is_captured() -> None:
    """What litellm sends from a thread goes through a transport that records alike."""
    sent: list[SentRequest] = []

    def archive(request: SentRequest) -> str:
        sent.append(request)
        return "key"

    async with openai_server(lambda _m, _n: "Hello.").serving() as server:
        captured = CapturedCall(
            archive, limits=Limits(), secrets=Secrets(), turn=1, temporal_attempt=1
        )

        def post() -> bytes:
            current.set(captured)
            with httpx.Client(transport=SyncWire()) as client:
                body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
                return client.post(f"{server.address}/v1/chat/completions", json=body).content

        content = await asyncio.to_thread(post)
        assert [request.body for request in sent] == [server.exchanges[0].request]
        assert captured.body == content == server.exchanges[0].response


async def test_an_exchange_of_tokens_is_not_recorded() -> None:
    """A request that is no JSON, such as a sign-in, is carried and leaves no trace, for it holds a
    secret.
    """
    sent: list[SentRequest] = []

    def archive(request: SentRequest) -> str:
        sent.append(request)
        return "key"

    captured = CapturedCall(archive, limits=Limits(), secrets=Secrets(), turn=1, temporal_attempt=1)
    async with (
        openai_server(lambda _m, _n: "Hello.").serving() as server,
        httpx.AsyncClient(transport=AsyncWire()) as client,
    ):
        token = current.set(captured)
        with contextlib.suppress(httpx.HTTPError):
            await client.post(server.address, data={"client_secret": KEY})
        current.reset(token)
    assert (sent, captured.size) == ([], 0)


async def test_anthropic_is_told_what_to_cache() -> None:
    """At most four marks reach the wire: behind the contract, the old prefix and what stays; OpenAI
    gets none.
    """
    async with anthropic_server(talkative).serving() as server:
        job = Job(model_at(server))
        await job.take_turn()
        await job.take_turn()
        wire = json.loads(job.archive.wire_request(RUN, 2))
    blocks = [
        *wire["system"],
        *(b for m in wire["messages"] for b in m["content"] if isinstance(b, dict)),
    ]
    inner = [b for block in blocks for b in block.get("content") or () if isinstance(b, dict)]
    marks = [block for block in (*blocks, *inner) if "cache_control" in block]
    assert 2 <= len(marks) <= 4
    assert marks[0]["text"] == "You write Python."
    async with openai_server(talkative).serving() as server:
        job = Job(model_at(server))
        await job.take_turn()
        assert b"cache_control" not in job.archive.wire_request(RUN, 1)
