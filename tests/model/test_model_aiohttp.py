"""What litellm sends through aiohttp itself is captured like everything else: the bytes of the
wire, both ways.
"""

import asyncio

import pytest
from model_calls import KEY, RUN, Job, openai_server, readable
from temporalio.exceptions import ApplicationError

from activities._options import ModelOptions
from runtime.archive.forms import Capture
from runtime.archive.requests import RequestReader
from runtime.base.values import Usage
from tests.eventually import eventually
from tests.servers.provider_server import ProviderServer

pytestmark = pytest.mark.usefixtures("litellm")


def model_at(server: ProviderServer, **options: object) -> dict[str, object]:
    address = f"{server.address}/v1/chat/completions"
    return {"name": "aiohttp_openai/gpt-4o", "api_base": address, "api_key": KEY, **options}


async def test_archived_bytes_are_the_wires() -> None:
    """Three turns: what the server received and sent is what the archive holds, and it says that it
    is the wire's.
    """
    async with openai_server(
        lambda _m, n: {"text": f"Reply {n} é" * 300, "code": f"x = {n}"}
    ).serving() as server:
        job = Job(model_at(server))
        replies = [await job.take_turn() for _ in range(3)]
        assert [e.request for e in server.exchanges] == [
            job.archive.wire_request(RUN, n) for n in (1, 2, 3)
        ]
        assert [e.response for e in server.exchanges] == [
            job.archive.wire_response(RUN, n) for n in (1, 2, 3)
        ]
    step = job.archive.step(replies[0].step)
    assert (step.capture, step.status_code, replies[2].text) == (
        Capture.WIRE,
        200,
        "Reply 3 é" * 300,
    )
    assert sum(chunk.size for chunk in job.archive.chunks(RUN, 1)) == step.response_bytes
    assert KEY.encode() not in readable(job.store)


@pytest.mark.parametrize(
    ("reply", "kind", "received"),
    [
        ({"fail": {"status": 429, "message": "Slow down."}}, "RateLimitError", b"Slow down."),
        ({"text": "late", "delay": 60}, "ModelTimeout", b""),
    ],
    ids=["refused", "silent"],
)
async def test_a_failure_keeps_what_was_received(
    reply: dict[str, object], kind: str, received: bytes
) -> None:
    """A refusal and silence are told apart, and retried by Temporal, not by litellm."""
    # Long enough for the request to be sent, on however busy a machine.
    limits = {"first_byte": 3} if "delay" in reply else {}
    async with openai_server(lambda _m, _n: {"text": "Hello.", **reply}).serving() as server:
        job = Job(model_at(server, **limits))
        with pytest.raises(ApplicationError) as failed:
            await job.take_turn()
        await eventually(lambda: len(server.exchanges) == 1, "the server has the request")
    (attempt,) = job.archive.attempts(RUN, 1)
    assert (attempt.capture, failed.value.type, failed.value.non_retryable) == (
        Capture.WIRE,
        kind,
        False,
    )
    assert RequestReader(job.store.get).wire(attempt.key) == server.exchanges[0].request
    assert received in job.archive.failed_response(attempt.key)


async def test_a_response_that_breaks_off_is_kept_as_far_as_it_came() -> None:
    """A connection that ends in mid-response is a broken one, and its bytes are in the archive."""

    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{half"
        )
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(half, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        job = Job(
            {
                "name": "aiohttp_openai/gpt-4o",
                "api_base": f"http://127.0.0.1:{port}/v1",
                "api_key": KEY,
            }
        )
        with pytest.raises(ApplicationError) as failed:
            await job.take_turn()
    (attempt,) = job.archive.attempts(RUN, 1)
    assert (attempt.capture, failed.value.type) == (Capture.WIRE, "StreamBroken")
    assert job.archive.failed_response(attempt.key) == b"{half"


async def test_what_a_reply_states_is_booked() -> None:
    """litellm reads no usage there, and says that it was nothing."""
    usage = {"prompt_tokens": 1000, "completion_tokens": 100}
    price = {"input": 2.0, "output": 10.0}
    async with openai_server(lambda _m, _n: {"text": "Hello.", "usage": usage}).serving() as server:
        reply = await Job(model_at(server, price=price)).take_turn()
    assert reply.usage == Usage(prompt=1000, completion=100)
    assert reply.cost_usd == pytest.approx(0.003)


async def test_an_empty_reply_is_not_asked_for_again() -> None:
    """What came is read once more: a second call would be paid for, and nobody would archive it."""
    async with openai_server(lambda _m, _n: {"text": ""}).serving() as server:
        job = Job(model_at(server))
        assert (await job.take_turn()).response_id == "chatcmpl-1"
        (exchange,) = server.exchanges
    (attempt,) = job.archive.attempts(RUN, 1)
    assert RequestReader(job.store.get).wire(attempt.key) == exchange.request


def test_it_is_not_asked_for_a_stream() -> None:
    """litellm has none for it, whatever the jobs file says."""
    assert ModelOptions(name="aiohttp_openai/gpt-4o", stream=True).stream is False
    assert ModelOptions(name="openai/gpt-4o").stream is True
