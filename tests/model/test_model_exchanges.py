"""A call that takes more than one request, a response that nobody asked to be compressed, and a
reply that came second.
"""

import asyncio
import gzip
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from gateway import Gateway, job_at
from model_calls import (
    KEY,
    RUN,
    SERVERS,
    STREAMING,
    Job,
    Make,
    anthropic_server,
    attempt,
    model_at,
    openai_server,
    run,
)
from temporalio.exceptions import ApplicationError

from activities._captured import CapturedCall, Limits, SentRequest
from activities._secrets import Secrets
from runtime.archive.forms import Capture, ExchangeReason
from runtime.archive.requests import RequestReader
from runtime.archive.spending import spent
from runtime.archive.verify import damage, verify_job
from tests.eventually import eventually
from tests.servers.provider_server import ProviderServer

pytestmark = pytest.mark.usefixtures("litellm")

TEXT = "Reply é \U0001f642 " * 50


def aiohttp_model(server: ProviderServer, **options: Any) -> dict[str, Any]:
    address = f"{server.address}/v1/chat/completions"
    return {"name": "aiohttp_openai/gpt-4o", "api_base": address, "api_key": KEY, **options}


@SERVERS
@STREAMING
async def test_a_compressed_reply_is_read_and_archived_as_it_came(make: Make, stream: bool) -> None:
    """A provider that compresses although it was asked not to: one attempt, the text, and the
    compressed bytes.
    """
    async with make(
        lambda _m, _n: {"text": TEXT, "code": "x = 1", "gzip": True}
    ).serving() as server:
        job = Job(model_at(server, stream=stream))
        reply = await job.take_turn()
        assert len(server.exchanges) == 1
        received = job.archive.wire_response(RUN, 1)
        # Nobody reads on behind a stream's last event: the end of the compressed form may stand
        # there.
        assert server.exchanges[0].response.startswith(received)
        assert stream or received == server.exchanges[0].response
    step = job.archive.step(reply.step)
    assert (reply.text, [call.name for call in reply.tool_calls]) == (TEXT, ["python"])
    assert (step.capture, step.headers["content-encoding"]) == (Capture.WIRE, "gzip")
    assert reply.usage.reported is True
    unpacked = zlib.decompressobj(47).decompress(received)
    assert (b"data:" if stream else b"Reply") in unpacked


async def test_a_compressed_reply_is_read_where_litellm_uses_aiohttp() -> None:
    """The provider without a stream and without httpx."""
    async with openai_server(lambda _m, _n: {"text": TEXT, "gzip": True}).serving() as server:
        job = Job(aiohttp_model(server))
        reply = await job.take_turn()
        assert job.archive.wire_response(RUN, 1) == server.exchanges[0].response
    assert reply.text == TEXT
    assert gzip.decompress(job.archive.wire_response(RUN, 1)).startswith(b"{")


async def test_a_compressed_stream_that_ends_early_is_a_broken_one() -> None:
    """Whether a stream is complete is looked for in what it says, and what came is archived as it
    came.
    """
    async with openai_server(
        lambda _m, _n: {"text": TEXT, "gzip": True, "end_after": 40}
    ).serving() as server:
        job = Job(model_at(server))
        with pytest.raises(ApplicationError) as failed:
            await job.take_turn()
        sent = server.exchanges[0].response
    (only,) = job.archive.attempts(RUN, 1)
    assert failed.value.type == "StreamBroken"
    assert job.archive.failed_response(only.key) == sent
    assert b"data:" in zlib.decompressobj(47).decompress(sent)


@pytest.mark.parametrize(("status", "method"), [(307, "POST"), (303, "GET")])
@pytest.mark.parametrize("model", [model_at, aiohttp_model], ids=["httpx", "aiohttp"])
async def test_every_request_of_a_call_is_archived(
    status: int, method: str, model: Callable[..., dict[str, Any]]
) -> None:
    """A redirect, and a reply that is fetched with a GET: two attempts, what came back of the
    first, and the reply.
    """
    async with openai_server(
        lambda _m, n: {"text": f"Reply {n}.", "redirect": status}
    ).serving() as server:
        job = Job(model(server))
        reply = await job.take_turn()
        await job.take_turn()
        first, second, *_ = server.exchanges
        assert [e.method for e in server.exchanges] == ["POST", method] * 2
    asked, got = job.archive.attempts(RUN, 1)
    reader = RequestReader(job.store.get)
    assert [reader.wire(asked.key), reader.wire(got.key)] == [first.request, second.request]
    assert [asked.method, got.method] == ["POST", method]
    exchange = job.archive.exchange(asked.key)
    assert exchange is not None
    assert (exchange.reason, exchange.status_code, exchange.headers["location"]) == (
        ExchangeReason.FOLLOWED, status, "/moved/1",
    )  # fmt: skip
    assert job.archive.exchanged_response(asked.key) == first.response
    assert (reply.text, job.archive.step(reply.step).attempt.key) == ("Reply 2.", got.key)
    assert job.archive.wire_response(RUN, 1) == second.response
    assert job.archive.wire_request(RUN, 1) == first.request, (
        "what was asked, also where the reply was fetched"
    )
    assert damage(verify_job(job.archive)) == []


@STREAMING
@pytest.mark.parametrize("word", ["a-gateway-0123456789", "short!"])
async def test_no_key_goes_on_to_another_server(
    word: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the header of Anthropic's protocol, which httpx does not know, and not in a gateway's
    own, however short: where a redirect leads to is the word of whoever answered.
    """
    monkeypatch.setenv("GATEWAY_WORD", word)
    async with anthropic_server(lambda _m, _n: "Hello.").serving() as server:
        moved = Gateway(b"", status=307, location=f"{server.address}/v1/messages")
        async with moved as address:
            own = {"extra_headers": {"X-Gateway": "$GATEWAY_WORD"}}
            job = job_at(address, "anthropic/claude-sonnet-4-5", stream=stream, **own)
            reply = await job.take_turn()
    (sent,) = server.exchanges
    assert (reply.text, [sent.request]) == ("Hello.", moved.requests)
    assert KEY not in str(sent.headers)
    assert word not in str(sent.headers)


@pytest.mark.parametrize(
    ("status", "url", "goes_on"),
    [
        (307, "https://api.example/v2", True),
        (307, "https://api.example:444/v1", False),
        (307, "http://api.example/v1", False),
        (307, "https://api.example.net/v1", False),
        (202, "https://results.example/1", True),
    ],
)
def test_keys_go_where_the_server_is_the_same(status: int, url: str, goes_on: bool) -> None:
    """By the same or a safer way, and wherever a library asks further by itself."""
    captured = CapturedCall(
        lambda _: "1", limits=Limits(), secrets=Secrets(), turn=1, temporal_attempt=1
    )
    captured.sending_now(SentRequest(Capture.WIRE, b"{}", "POST", "https://api.example/v1"))
    captured.answering(status, {"location": url})
    headers = {"accept": "*/*", "x-api-key": "0123", "api-key": KEY}
    assert captured.withheld(url, headers) == ([] if goes_on else ["x-api-key", "api-key"])


@pytest.mark.parametrize("place", ["http://xn--a/", "http://xn--zzzzzz99/", "http://[::1/"])
def test_a_place_that_is_none_costs_no_reply(place: str) -> None:
    """A reply that names where else it is, on a host whose name is none."""
    captured = CapturedCall(
        lambda _: "1", limits=Limits(), secrets=Secrets(), turn=1, temporal_attempt=1
    )
    captured.sending_now(SentRequest(Capture.WIRE, b"{}", "POST", "https://api.example/v1"))
    captured.answering(200, {"location": place})
    assert captured.received(b"{}") == b"{}"


async def test_the_reply_that_lost_a_race_is_archived_too() -> None:
    """Two attempts run at a time: one is the turn's step, the other's reply stands beside it, with
    what it cost.
    """

    gate = asyncio.Event()

    def respond(_messages: list[dict[str, Any]], number: int) -> dict[str, Any]:
        return {"text": f"Reply {number}.", "gate": gate}

    async with openai_server(respond).serving() as server:
        job = Job(model_at(server))
        call = job.call()
        racing = asyncio.gather(run(job.store, call, attempt(1)), run(job.store, call, attempt(2)))

        async def both() -> bool:
            return len(server.exchanges) == 2

        await eventually(both, "both are asked for")
        gate.set()
        one, other = await racing
        assert one == other
        sent = {e.response for e in server.exchanges}
        assert len(sent) == 2
    lost = [
        key for a in job.archive.attempts(RUN, 1) if job.archive.exchange(key := a.key) is not None
    ]
    (beside,) = lost
    exchange = job.archive.exchange(beside)
    assert exchange is not None and exchange.reply is not None
    assert exchange.reason is ExchangeReason.SUPERSEDED
    assert {exchange.reply.text, one.text} == {"Reply 1.", "Reply 2."}
    assert exchange.cost_usd > 0
    assert {job.archive.exchanged_response(beside), job.archive.wire_response(RUN, 1)} == sent


@pytest.mark.parametrize("first_wins", [True, False], ids=["first", "second"])
async def test_what_lost_a_race_is_counted_once(first_wins: bool) -> None:
    """``holdfast cost`` tells what the job booked where the winner counted the other as failed, and
    else the other's reply too.
    """
    gates = {1: asyncio.Event(), 2: asyncio.Event()}

    def respond(_messages: list[dict[str, Any]], number: int) -> dict[str, Any]:
        return {"text": f"Reply {number}.", "gate": gates[number]}

    async with openai_server(respond).serving() as server:
        job = Job(model_at(server))
        slow, quick = (2, 1) if first_wins else (1, 2)
        running = {}
        for number in gates:
            running[number] = asyncio.create_task(run(job.store, job.call(), attempt(number)))

            async def arrived(number: int = number) -> bool:
                return len(server.exchanges) == number

            await eventually(arrived, "the request has arrived")
        gates[quick].set()
        one = await running[quick]
        gates[slow].set()
        assert await running[slow] == one
    step = job.archive.step(one.step)
    beside = next(a for a in job.archive.attempts(RUN, 1) if a.key != step.attempt.key)
    exchange = job.archive.exchange(beside.key)
    assert exchange is not None and (beside.temporal_attempt, exchange.reason) == (
        slow,
        ExchangeReason.SUPERSEDED,
    )
    assert step.failed_attempts.attempts == quick - 1
    booked = step.usage.total + step.failed_attempts.usage.total
    told = spent(job.archive)
    assert told["calls"] == 2
    assert told["prompt"] + told["completion"] == booked + (
        exchange.usage.total if first_wins else 0
    )
    cost = step.cost_usd + step.failed_attempts.cost_usd + (exchange.cost_usd if first_wins else 0)
    assert told["cost_usd"] == pytest.approx(cost)


@pytest.mark.parametrize(
    "name", ["openai/gpt-4o", "anthropic/claude-sonnet-4-5", "aiohttp_openai/gpt-4o"]
)
@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_in_a_circle_is_left_soon(name: str, status: int) -> None:
    """To TLS, another name and another path: more is none. It used nothing."""
    gateway = Gateway(b"{}", status=status)
    async with gateway as address:
        gateway.headers["location"] = f"{address}/v1"
        with pytest.raises(ApplicationError, match="redirects more than 3 times") as failed:
            await job_at(address, name).take_turn()
    assert len(gateway.requests) == 4
    assert failed.value.non_retryable is False
    assert failed.value.details[0].usage.total == 0
