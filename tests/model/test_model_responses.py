"""Models of OpenAI's Responses API: a call is captured, read and failed like any other's."""

import json
from pathlib import Path
from typing import Any

import pytest
from gateway import Gateway, job_at
from model_calls import (
    KEY,
    RUN,
    STREAMING,
    Job,
    anthropic_server,
    model_at,
    openai_server,
    readable,
    responses_server,
)
from temporalio.exceptions import ApplicationError

from activities._options import ModelOptions
from runtime.archive.forms import Capture
from runtime.archive.stores import open_store
from runtime.base.spec.models import Retry
from runtime.base.tokens import encoding
from runtime.base.values import ToolCall, Usage
from tests.servers.provider_server import PIECE, ServerReply
from tests.servers.responses_server import ResponsesProtocol

pytestmark = pytest.mark.usefixtures("litellm")

MODELS = pytest.mark.parametrize(
    "name", ["openai/gpt-5-codex", "openai/gpt-5-pro", "openai/responses/gpt-4o"]
)
REASONING = (
    {
        "summary": [{"type": "summary_text", "text": "First I look around."}],
        "encrypted_content": "c2VhbGVk",
    },
    {"summary": [], "encrypted_content": "YWdhaW4="},
)
THOUGHTS = tuple(
    {
        "type": "reasoning",
        "id": f"rs_1_{n}",
        **{name: value for name, value in item.items() if value},
    }
    for n, item in enumerate(REASONING)
)


def talkative(messages: list[dict[str, Any]], number: int) -> dict[str, Any]:
    """A reply with everything: reasoning, text that looks like markup, a statement."""
    return {
        "text": f"Reply {number}:  two  blanks,\n\n</s> \U0001f642 and {'=' * 900}\n",
        "code": f"print({number}, 'é')",
        "blocks": REASONING,
    }


@MODELS
@STREAMING
async def test_archived_bytes_are_the_wires(name: str, stream: bool, tmp_path: Path) -> None:
    """Three turns: each request and each response in the archive equals what the server saw and
    sent.
    """
    async with responses_server(talkative).serving() as server:
        job = Job(
            model_at(server, name=name, stream=stream), store=open_store(str(tmp_path / "archive"))
        )
        replies = [await job.take_turn() for _ in range(3)]
        assert [e.request for e in server.exchanges] == [
            job.archive.wire_request(RUN, n) for n in range(1, 4)
        ]
        assert [e.response for e in server.exchanges] == [
            job.archive.wire_response(RUN, n) for n in range(1, 4)
        ]
    step = job.archive.step(replies[0].step)
    assert (step.capture, step.status_code) == (Capture.WIRE, 200)
    assert sum(chunk.size for chunk in job.archive.chunks(RUN, 1)) == step.response_bytes
    assert KEY.encode() not in readable(job.store)


@MODELS
@STREAMING
async def test_a_reply_is_complete(name: str, stream: bool) -> None:
    """Text, call, reasoning, usage and cost are there once, also where litellm makes a stream
    up.
    """
    async with responses_server(talkative).serving() as server:
        reply = await Job(model_at(server, name=name, stream=stream)).take_turn()
    wanted = talkative([], 1)
    arguments = json.dumps({"code": wanted["code"]})
    assert reply.text == wanted["text"]
    assert reply.tool_calls == (ToolCall(id="call_1_0", name="python", arguments=arguments),)
    assert (reply.thinking, reply.finish_reason, reply.response_id) == (
        THOUGHTS,
        "tool_calls",
        "resp_1",
    )
    assert reply.usage == Usage(
        prompt=1000, completion=len(wanted["text"]) // PIECE + 1, cache_read=512
    )
    assert reply.cost_usd > 0
    count = encoding("cl100k_base").count
    thought = count("First I look around.")
    assert reply.tokens == count(reply.text) + count("python") + count(arguments) + thought


async def test_a_reply_goes_back_as_it_came() -> None:
    """The second request holds the first reply: reasoning first, still encrypted, then text, call
    and its output.
    """
    seen: list[list[dict[str, Any]]] = []

    def respond(messages: list[dict[str, Any]], number: int) -> dict[str, Any]:
        seen.append(messages)
        return talkative(messages, number)

    async with responses_server(respond).serving() as server:
        job = Job(model_at(server))
        first = await job.take_turn()
        await job.take_turn()
        asked = json.loads(server.exchanges[0].request)
    assert (asked["store"], asked["include"]) == (False, ["reasoning.encrypted_content"])
    items = seen[1][2:]
    assert [item["type"] for item in items[:5]] == [
        "reasoning",
        "reasoning",
        "message",
        "function_call",
        "function_call_output",
    ]
    assert [item["encrypted_content"] for item in items[:2]] == ["c2VhbGVk", "YWdhaW4="]
    assert items[2]["content"][0]["text"] == first.text
    assert (items[3]["call_id"], items[3]["arguments"]) == (
        "call_1_0",
        first.tool_calls[0].arguments,
    )


async def test_reasoning_stays_with_the_api_that_gave_it() -> None:
    """A job that goes on with a model of another protocol sends it no reasoning items."""
    async with (
        responses_server(talkative).serving() as server,
        openai_server(talkative).serving() as chat,
        anthropic_server(lambda _m, _n: "Hello.").serving() as claude,
    ):
        job = Job(model_at(server))
        await job.take_turn()
        for other in (chat, claude):
            job.model = model_at(other)
            await job.take_turn()
            assert b"c2VhbGVk" not in other.exchanges[0].request
            assert b"reasoning" not in other.exchanges[0].request


async def test_a_choice_to_store_is_the_users() -> None:
    """``store`` in the options is sent as it is."""
    async with responses_server(lambda _m, _n: "Hello.").serving() as server:
        await Job(model_at(server, store=True)).take_turn()
        asked = json.loads(server.exchanges[0].request)
    assert asked["store"] is True
    assert "include" not in asked


@STREAMING
async def test_a_refusal_and_a_cut_are_kept(stream: bool) -> None:
    """A refusal is no text, and a reply that the limit cut off says so."""
    replies = [
        {"refusal": "I cannot help with that."},
        {"text": "Too lo", "finish_reason": "length"},
    ]
    async with responses_server(lambda _m, n: replies[n - 1]).serving() as server:
        job = Job(model_at(server, stream=stream))
        refused, cut = await job.take_turn(), await job.take_turn()
    assert (refused.text, refused.refusal) == ("", "I cannot help with that.")
    assert (cut.text, cut.finish_reason) == ("Too lo", "length")


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
async def test_a_model_that_says_nothing_ends_no_job(content_type: str) -> None:
    """Whole or streamed, such a reply is the turn's, with what it used."""
    used = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
    response = {"id": "resp_1", "object": "response", "status": "completed", "output": []}
    said = json.dumps({**response, "model": "m", "created_at": 1, "usage": used})
    stream = content_type == "text/event-stream"
    body = f'data: {{"type": "response.completed", "response": {said}}}\n\n' if stream else said
    async with Gateway(body.encode(), content_type) as address:
        reply = await job_at(address, "openai/gpt-5-codex", stream=stream).take_turn()
    assert (reply.text, reply.tool_calls, reply.finish_reason) == ("", (), "stop")
    assert reply.usage == Usage(prompt=100, completion=20)


@pytest.mark.parametrize(
    ("status", "stream", "streamed"),
    [
        *((status, True, False) for status in ("queued", "in_progress", "cancelled", "failed")),
        *((status, False, False) for status in ("queued", "cancelled")),
        *((status, True, True) for status in ("cancelled", "failed")),
    ],
)
async def test_what_a_provider_has_not_got_through_with_is_no_reply(
    status: str, stream: bool, streamed: bool
) -> None:
    """Half a statement was executed; or the model was told that it had said nothing."""
    protocol = ResponsesProtocol()
    response = protocol.whole(ServerReply(text="Hello.", code="x = 1"), {"model": "m"}, 1)
    said = json.dumps({**response, "status": status})
    body = f'data: {{"type": "response.completed", "response": {said}}}\n\n' if streamed else said
    kind = "text/event-stream" if streamed else "application/json"
    async with Gateway(body.encode(), kind) as address:
        job = job_at(address, "openai/gpt-5-codex", stream=stream)
        with pytest.raises(ApplicationError) as failed:
            await job.take_turn()
    assert (failed.value.type, failed.value.non_retryable, failed.value.message) == (
        "StreamBroken",
        False,
        f"the reply is not complete (its status is {status!r})",
    )
    (attempt,) = job.archive.attempts(RUN, 1)
    assert job.archive.failed_response(attempt.key) == body.encode()
    failure = job.archive.failure(attempt.key)
    assert failure is not None
    assert failure.spent.usage.reported


@pytest.mark.parametrize(
    ("reply", "kind", "final"),
    [
        ({"fail": {"status": 401, "message": "No such key."}}, "AuthenticationError", False),
        ({"fail": {"status": 429, "message": "Slow down."}}, "RateLimitError", False),
        (
            {
                "fail": {
                    "status": 400,
                    "message": "Your input exceeds the context window of this model.",
                }
            },
            None,
            True,
        ),
        (
            {"error_after": 3, "error": {"type": "server_error", "message": "It broke."}},
            "ServerError",
            False,
        ),
        ({"break_after": 3}, "StreamBroken", False),
        ({"end_after": 3}, "StreamBroken", False),
        ({"hang_after": 3}, "ModelTimeout", False),
    ],
    ids=["key", "rate", "window", "error", "break", "end", "hang"],
)
async def test_a_failure_is_told_like_any_others(
    reply: dict[str, Any], kind: str | None, final: bool
) -> None:
    """Refusals, errors in mid-stream, streams that break or stop: one request each, and litellm
    retries none.
    """
    limits = {"stall": 0.5} if "hang_after" in reply else {}
    async with responses_server(
        lambda _m, _n: {"text": "Hello world.", **reply}
    ).serving() as server:
        job = Job(model_at(server, **limits))
        with pytest.raises(ApplicationError) as failed:
            await job.take_turn()
        assert len(server.exchanges) == 1
    assert failed.value.type == (kind or "ContextWindowExceeded")
    assert failed.value.non_retryable is final


def test_what_is_not_streamed_is_not_awaited_as_a_stream() -> None:
    """A model whose provider gives whole replies may take as long for its first byte as for all of
    it.
    """
    assert ModelOptions(name="openai/gpt-5-pro", timeout=900).limits(Retry()).first_byte == 900
    assert ModelOptions(name="openai/gpt-5-codex", timeout=900).limits(Retry()).first_byte < 900
