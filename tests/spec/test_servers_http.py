"""MCP servers over HTTP that mean no good: what they do ends a call, and nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from temporalio.testing import ActivityEnvironment

from activities import tools
from activities.contracts import ServersQuestion, ToolResult
from activities.tools import ToolActivities
from runtime.archive.stores import MemoryStore
from runtime.base.spec.servers import ServerSpec
from runtime.tools.http import BETWEEN, MOST_REDIRECTS, HttpClient
from runtime.tools.stdio import MOST_BYTES
from tests.eventually import eventually
from tests.servers.hostile_http import WRONGS, HostileHttp, hostile_http
from tests.servers.server_calls import KEY, call_of
from tests.still_clock import still_until

SAID = {
    "drop": "the server web said: ",
    "hang": "web.hang did not answer within 0.3 seconds",
    "page": "the server web said: Unexpected content type: text/html",
    "garbage": "the server web gave an answer that is none",
    "refuse": "the server web said: HTTP 500 Internal Server Error",
    "expired": 'the server web said: HTTP 401 Unauthorized: {"error": "invalid_token"}',
    "flood": "the server web said: HTTP 500 Internal Server Error",
    "endless": "the server web said: a message of more than 8388608 bytes",
    "cut": "the server web said: SSE stream ended without a response",
    "part": "the server web said: ",
}
SECONDS = {"hang": 0.3}

Call = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def server() -> Iterator[HostileHttp]:
    """The hostile server."""
    with hostile_http() as server:
        yield server


@pytest.fixture
async def call(server: HostileHttp, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Call]:
    """Call a tool, as a statement's effect of its own."""
    monkeypatch.setenv("WEB_TOKEN", "t0ken")
    async with calling(ServerSpec(name="web", url=server.url, token="WEB_TOKEN")) as call:
        yield call


@asynccontextmanager
async def calling(spec: ServerSpec) -> AsyncIterator[Call]:
    """Calls of a server's tools, by a worker's activities."""
    worker = ToolActivities(MemoryStore())
    async with worker.open():
        question = ServersQuestion(key=KEY, servers=(spec,))
        listed = await ActivityEnvironment().run(worker.list_servers, question)
        tools = {tool.tool: tool for tool in listed.listings[0].tools}

        async def call(name: str, effect: int, seconds: float | None = None) -> ToolResult:
            timeout = seconds or SECONDS.get(name, 60.0)
            request = call_of(spec, tools[name], effect=effect, timeout=timeout)
            return await ActivityEnvironment().run(worker.call_tool, request)

        yield call


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONGS)
async def test_it_ends_a_call(call: Call, server: HostileHttp, name: str) -> None:
    """The call is an error, and the next one is answered."""
    with still_until(tools, lambda: name in server.called):
        result = await call(name, 0)
    assert result.error_message.startswith(SAID[name])
    assert (await call("well", 1)).value == "well"
    assert server.called == [name, "well"]
    assert server.tokens == {"Bearer t0ken"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["drop", "part"])
async def test_a_connection_that_breaks_ends_no_other_call(
    call: Call, server: HostileHttp, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    """A call of another job goes on beside it, also one that is made at most once."""
    later = asyncio.create_task(call("later", 0, seconds=300.0))
    await eventually(lambda: "later" in server.called, "the other call")
    assert (await call(name, 1)).error_message.startswith(SAID[name])
    server.released.set()
    assert (await later).value == "well"
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.slow
async def test_a_call_whose_time_is_the_servers(server: HostileHttp) -> None:
    """That it is over is told as that, and not as a connection that was lost."""
    spec = ServerSpec(name="web", url=server.url, timeout=1.0)
    async with calling(spec) as call:
        result = await call("hang", 0, seconds=spec.timeout)
    said = "web.hang did not answer within 1 seconds"
    assert (result.error_type, result.error_message) == ("TimeoutError", said)


@pytest.mark.slow
async def test_a_call_made_at_most_once_whose_answer_was_lost(
    call: Call, server: HostileHttp
) -> None:
    """It is not sent again, whatever the transport would do."""
    assert (await call("pay", 0)).error_type == "OutcomeUnknown"
    assert (await call("pay", 0)).error_type == "OutcomeUnknown"
    assert server.called == ["pay"]


@pytest.mark.slow
async def test_a_call_made_at_most_once_that_was_refused(call: Call) -> None:
    """As by an expired token: the server did not look at the call, so its outcome is known."""
    result = await call("buy", 0)
    assert result.error_type == "RuntimeError"
    assert result.error_message == SAID["expired"]


async def test_a_stream_of_events_is_not_asked_for_again_at_once() -> None:
    """Whatever the server says of that, and however soon it ends it."""
    answers = httpx2.MockTransport(lambda _: httpx2.Response(200, content="retry: 0\n\n"))
    waits: list[float] = []

    async def pause(seconds: float) -> None:
        waits.append(seconds)

    async with HttpClient(transport=answers, pause=pause) as client:
        for _ in range(4):
            await client.post("http://web.test/mcp", json={})
            await client.get("http://web.test/mcp")
    assert waits == [BETWEEN] * 3


class Pieces(httpx2.AsyncByteStream):
    """A body as it came."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


async def test_a_server_that_leads_in_a_circle_is_followed_a_few_times() -> None:
    """The package asks twice: its protocol has two beginnings."""
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        return httpx2.Response(307, headers={"Location": asked[-1]})

    url = "http://web.test/mcp"
    async with HttpClient(transport=httpx2.MockTransport(answer)) as http:
        with pytest.raises(BaseExceptionGroup):
            async with Client(streamable_http_client(url, http_client=http)):
                pass
    assert asked == [url] * 2 * (1 + MOST_REDIRECTS)


async def test_half_a_character_is_read_wherever_its_bytes_are_cut() -> None:
    """Whole ones, and what only looks like one behind a backslash, are what they were."""
    body = rb'"\ud83d, \ud83D\uDe00, \\ud83d, \\\ude00\ud83d\n"'
    cuts = [(a, b) for a in range(len(body)) for b in range(a, len(body), 3)]
    pieces = iter([Pieces(body[:a], body[a:b], body[b:]) for a, b in cuts])
    answers = httpx2.MockTransport(lambda _: httpx2.Response(200, stream=next(pieces)))
    async with HttpClient(transport=answers) as client:
        for _ in cuts:
            async with client.stream("POST", "http://web.test/mcp", json={}) as response:
                read = json.loads(await response.aread())
            assert read == "\ufffd, \U0001f600, \\ud83d, \\\ufffd\ufffd\n"


async def test_bytes_that_are_no_text_are_read_wherever_they_are_cut() -> None:
    """As of a text that a server cut by its bytes."""
    body = b'"\xc3\xa4 \xf0\x9f\x98\x80 \xf0\x9f\x98"'
    for at in range(len(body)):
        pieces = Pieces(body[:at], body[at:])
        answers = httpx2.MockTransport(lambda _, is_=pieces: httpx2.Response(200, stream=is_))
        async with (
            HttpClient(transport=answers) as client,
            client.stream("POST", "http://web.test/mcp", json={}) as response,
        ):
            read = json.loads(await response.aread())
        assert read == "\xe4 \U0001f600 \ufffd"


async def test_a_message_may_not_be_too_long() -> None:
    """Of one that is, no more is read; one that is as long as it may be keeps its headers."""
    kind = {"Content-Type": "application/json", "Mcp-Session-Id": "one"}

    async def answer(*pieces: bytes) -> httpx2.Response:
        answers = httpx2.MockTransport(
            lambda _: httpx2.Response(200, headers=kind, stream=Pieces(*pieces))
        )
        async with (
            HttpClient(transport=answers) as client,
            client.stream("POST", "http://web.test/mcp", json={}) as response,
        ):
            await response.aread()
        return response

    fits = await answer(b" " * MOST_BYTES)
    assert (fits.status_code, len(fits.content)) == (200, MOST_BYTES)
    assert fits.headers["Mcp-Session-Id"] == "one"
    long = await answer(b" " * MOST_BYTES, b" ")
    assert long.json()["error"]["message"] == "a message of more than 8388608 bytes"


@pytest.mark.slow
async def test_an_answer_with_half_a_character_is_one(call: Call) -> None:
    """As of a text that a server cut: the package takes none."""
    assert (await call("halved", 0)).value == "smile \ufffd"


@pytest.mark.slow
async def test_an_event_may_be_as_long_as_a_message(call: Call) -> None:
    """Servers send their answers as events, by default."""
    long = (await call("long", 0)).value
    assert str(long).endswith("\n[2883584 characters more]")


@pytest.mark.slow
async def test_what_a_server_says_is_not_written_as_it_came(
    call: Call, capfd: pytest.CaptureFixture[str]
) -> None:
    """The standard error of its process is the terminal of ``run``."""
    # The next call has a process of its own, which begins here.
    await call("hang", 0)
    result = await call("escapes", 1)
    assert result.error_message.startswith("the server web said: Unexpected content type")
    # The server of the test itself tells there of connections that were cut.
    assert "title" not in capfd.readouterr().err
