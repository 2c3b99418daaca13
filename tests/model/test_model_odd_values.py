"""Replies that have other JSON where a text should be, and one that no step can be made of."""

import json
from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
from gateway import Gateway, job_at
from model_calls import (
    RUN,
    Job,
    anthropic_server,
    model_at,
    openai_server,
    responses_server,
)
from temporalio.exceptions import ApplicationError

from activities import _model_turn
from runtime.base.values import Usage
from tests.servers.openai_server import OpenAIProtocol
from tests.servers.provider_server import Policy, ProviderServer, ServerReply

pytestmark = pytest.mark.usefixtures("litellm")

REPLY = ServerReply(text="Hello.", code="x = 1", usage={"prompt_tokens": 7, "completion_tokens": 5})


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("path", "value", "id", "call"),
    [
        (("id",), 5, "5", "call_1_0"),
        (("id",), {"of": 5}, '{"of":5}', "call_1_0"),
        (("choices", 0, "message", "refusal"), 5, "chatcmpl-1", "call_1_0"),
        (("choices", 0, "message", "tool_calls", 0, "id"), 7, "chatcmpl-1", "7"),
        (("choices", 0, "message", "tool_calls", 0, "id"), ["x"], "chatcmpl-1", '["x"]'),
    ],
    ids=str,
)
async def test_what_is_no_text_is_written_as_one(
    path: tuple[Any, ...], value: Any, id: str, call: str, stream: bool
) -> None:
    """A server that numbers its replies: the call was made again each minute, for as long as the
    job was open, and nothing booked it.
    """
    body = OpenAIProtocol().whole(REPLY, {"model": "some-model"}, 1)
    place: Any = body
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    gateway = Gateway(json.dumps(body).encode(), "application/json")
    async with gateway as address:
        reply = await job_at(address, "openai/gpt-4o", stream=stream).take_turn()
    assert len(gateway.requests) == 1
    assert (reply.text, reply.tool_calls[0].name) == ("Hello.", "python")
    assert json.loads(reply.tool_calls[0].arguments) == {"code": "x = 1"}
    assert reply.usage == Usage(prompt=7, completion=5)
    assert (reply.response_id, reply.tool_calls[0].id) == (id, call)


async def test_a_reply_of_which_nothing_can_be_made_is_a_failed_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is archived and booked, as it is paid for, and ``retry`` bounds how often it is tried."""

    def fails(*_: object) -> int:
        raise ValueError("no such reply")

    monkeypatch.setattr(_model_turn, "reply_tokens", fails)
    async with openai_server(lambda _m, _n: REPLY).serving() as server:
        job = Job(model_at(server))
        with pytest.raises(ApplicationError) as failed:
            await job.take_turn()
        (exchange,) = server.exchanges
    (attempt,) = job.archive.attempts(RUN, 1)
    failure = job.archive.failure(attempt.key)
    assert failure is not None
    assert (failure.error_type, failure.error_message) == ("ServerError", "no such reply")
    assert failure.spent.usage == Usage(prompt=7, completion=5)
    assert job.archive.failed_response(attempt.key) == exchange.response
    assert (failed.value.type, failed.value.non_retryable) == ("ServerError", False)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("make", "id", "named"),
    [
        (openai_server, "chatcmpl-1", True),
        (openai_server, "chatcmpl-1", False),
        (anthropic_server, "msg_1", True),
        (anthropic_server, "msg_1", False),
        (responses_server, "resp_1", True),
    ],
    ids=["openai", "openai-nameless", "anthropic", "anthropic-nameless", "responses"],
)
async def test_a_reply_has_the_id_that_the_provider_gave_it(
    make: Callable[[Policy], ProviderServer], id: str, stream: bool, named: bool
) -> None:
    """Where it gave none, it has none: litellm makes one up."""
    server = make(lambda _m, _n: "Hello.")
    async with server.serving():
        settings = model_at(server, stream=stream)
        await Job(settings).take_turn()
    (answered,) = server.exchanges
    body = answered.response
    if not named:
        body = body.replace(b'"id": "%b", ' % id.encode(), b"")
    async with Gateway(body, "text/event-stream" if stream else "application/json") as address:
        reply = await job_at(address, settings["name"], stream=stream).take_turn()
    assert (reply.text, reply.response_id) == ("Hello.", id if named else "")


def _chunk(**choice: Any) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    said = {**chunk, "choices": [{"index": 0, "finish_reason": None, **choice}]}
    return b"data: %b\n\n" % json.dumps(said).encode()


THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
PARTS: list[Any] = [
    [{"type": "reasoning", "summary": []}, {"type": "text", "text": "x = "}],
    [THOUGHT],
    [{"type": "text", "text": "1"}, {"type": "text", "text": "[DONE]"}, {"type": "reference"}],
]
"""Contents of chunks, in parts."""
ALTERNATIVES = pytest.mark.parametrize("name", ["openai/gpt-4o", "hosted_vllm/m", "mistral/m"])


@ALTERNATIVES
async def test_a_text_in_parts_is_streamed(name: str) -> None:
    """The model was told that it had said nothing, each time that it was paid."""
    body = b"".join(_chunk(delta={"content": parts}) for parts in PARTS)
    body += _chunk(delta={}, finish_reason="stop") + b"data: [DONE]\n\n"
    async with Gateway(body, "text/event-stream") as address:
        job = job_at(address, name)
        reply = await job.take_turn()
    assert reply.text == "x = 1[DONE]"
    assert job.archive.wire_response(RUN, 1) == body


@ALTERNATIVES
async def test_a_whole_text_in_parts_is_read(name: str) -> None:
    """It ended the job, as what is no reply of a model."""
    body = OpenAIProtocol().whole(REPLY, {"model": "some-model"}, 1)
    body["choices"][0]["message"]["content"] = list(chain(*PARTS))
    async with Gateway(json.dumps(body).encode()) as address:
        reply = await job_at(address, name).take_turn()
    assert (reply.text, reply.tool_calls[0].name) == ("x = 1[DONE]", "python")
    assert reply.usage == Usage(prompt=7, completion=5)


@pytest.mark.parametrize("nothing", [{"delta": None}, {}], ids=["null", "absent"])
@pytest.mark.parametrize("name", ["hosted_vllm/m", "openrouter/m"])
async def test_nothing_in_a_chunk_is_nothing(name: str, nothing: dict[str, None]) -> None:
    """Most of litellm's readers failed on a null, and OpenRouter's on what is not there."""
    choices = b'"choices": [{"index": 0, "finish_reason": null}]'
    none = _chunk().replace(*(choices, b'"choices": null') if nothing else (b", " + choices, b""))
    body = none + _chunk(delta={"content": "x = "}) + _chunk(**nothing) + none
    body += _chunk(delta={"content": "1"}) + _chunk(**nothing, finish_reason="stop")
    async with Gateway(body, "text/event-stream") as address:
        reply = await job_at(address, name).take_turn()
    assert (reply.text, reply.finish_reason) == ("x = 1", "stop")
