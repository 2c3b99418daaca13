"""What the local model servers share: real HTTP on a free port, a policy that answers, and a record
of every byte.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import importlib.util
import inspect
import json
import signal
import sys
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from activities._script import ScriptedReply

PIECE = 7
"""Characters of a reply in one event of a stream: few, so that a reply is many."""

Policy = Callable[[list[dict[str, Any]], int], Any]


class ServerReply(ScriptedReply):
    """A reply as scripts have it, and what only a server can do.

    ``hang_after`` and ``error_after`` are numbers of characters, as ``break_after`` is; 0 is right
    after the headers. ``end_after`` ends the stream in good order, but without saying that the
    reply is complete. Like ``fail``, they happen on the first ``times`` requests of the same bytes.
    ``hang`` answers nothing at all. ``blocks`` are thinking blocks. ``gzip`` compresses, whatever
    was asked for. ``redirect`` is a status by which the client is sent to another place, where the
    reply is: with its request again (307), or to fetch it with a GET (303).
    """

    gate: Any = None
    """An ``asyncio.Event`` that the reply waits for."""
    hang: bool = False
    hang_after: int | None = None
    error_after: int | None = None
    end_after: int | None = None
    error: dict[str, Any] = {"type": "overloaded_error", "message": "Overloaded"}
    blocks: tuple[dict[str, Any], ...] = ()
    gzip: bool = False
    redirect: int | None = None
    usage: Any = None
    """What it says that it used: any JSON."""
    service_tier: str | None = None
    ids: tuple[str, ...] = ()
    """Ids of the native calls; by default ``call_N_I`` with the number of the request."""


@dataclass
class Exchange:
    """One request as received and its response as sent, bodies only."""

    request: bytes
    headers: dict[str, str]
    method: str = "POST"
    status: int = 0
    response: bytes = b""


@dataclass
class ProviderServer:
    """One server.

    ``exchanges`` are in the order in which requests arrived; ``log`` keeps them as files, too.
    """

    protocol: Protocol
    policy: Policy
    log: Path | None = None
    port: int = 0
    exchanges: list[Exchange] = field(default_factory=list)
    address: str = ""
    _seen: Counter[bytes] = field(default_factory=Counter)
    _moved: dict[str, bytes] = field(default_factory=dict)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[ProviderServer]:
        """Serve until the end of the block, and then drop what still hangs."""
        app = web.Application(client_max_size=1 << 28)
        app.router.add_post("/{path:.*}", self._handle)
        app.router.add_get("/moved/{path:.*}", self._handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port)
        await site.start()
        self.port = runner.addresses[0][1]
        self.address = f"http://127.0.0.1:{self.port}"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        exchange = Exchange(request=body, headers=dict(request.headers), method=request.method)
        self.exchanges.append(exchange)
        number = len(self.exchanges)
        self._keep(number, "request", body)
        self._seen[body] += 1
        moved = request.path.startswith("/moved/")
        asked = json.loads(body or self._moved[request.path])
        said = await asyncio.to_thread(self.policy, self.protocol.messages(asked), number)
        reply = (
            ServerReply(text=said) if isinstance(said, str) else ServerReply.model_validate(said)
        )
        if reply.redirect is not None and not moved:
            place = f"/moved/{number}"
            self._moved[place] = body
            exchange.status, exchange.response = reply.redirect, b'{"moved": true}'
            return web.Response(
                status=reply.redirect, body=exchange.response, headers={"location": place}
            )
        answer = _Answering(self.protocol, request, exchange, reply, asked, number)
        try:
            return await answer.give(bad=self._seen[body] <= reply.times)
        finally:
            self._keep(number, "response", exchange.response)

    def _keep(self, number: int, kind: str, data: bytes) -> None:
        if self.log is not None:
            (self.log / f"{number:05d}.{kind}").write_bytes(data)


class Protocol:
    """How a provider writes replies, errors and streams."""

    def messages(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        """The messages of a request."""
        raise NotImplementedError

    def whole(self, reply: ServerReply, asked: dict[str, Any], number: int) -> dict[str, Any]:
        """A reply as one JSON object."""
        raise NotImplementedError

    def events(
        self, reply: ServerReply, asked: dict[str, Any], number: int
    ) -> Iterator[tuple[bytes, int]]:
        """A reply as events of a stream, each with how many characters of the reply it carries."""
        raise NotImplementedError

    def endings(self, reply: ServerReply, asked: dict[str, Any], number: int) -> Iterator[bytes]:
        """The events that say that the reply is complete."""
        raise NotImplementedError

    def error(self, kind: str, message: str) -> dict[str, Any]:
        """The body of an error response."""
        raise NotImplementedError

    def error_event(self, error: dict[str, Any]) -> bytes:
        """An error in mid-stream."""
        raise NotImplementedError


@dataclass
class _Answering:
    protocol: Protocol
    request: web.Request
    exchange: Exchange
    reply: ServerReply
    asked: dict[str, Any]
    number: int
    _packer: Any = field(default_factory=lambda: zlib.compressobj(wbits=31))

    async def give(self, *, bad: bool) -> web.StreamResponse:
        reply = self.reply
        await asyncio.sleep(reply.delay)
        if reply.gate is not None:
            await reply.gate.wait()
        if reply.hang:
            await asyncio.Event().wait()
        if bad and reply.fail is not None:
            headers = (
                {}
                if reply.fail.retry_after is None
                else {"retry-after": f"{reply.fail.retry_after:g}"}
            )
            kind = "invalid_request_error" if reply.fail.status < 429 else "server_error"
            return self._json(
                reply.fail.status, self.protocol.error(kind, reply.fail.message), headers
            )
        if not self.asked.get("stream"):
            return self._json(200, self.protocol.whole(reply, self.asked, self.number), {})
        return await self._stream(bad=bad)

    def _json(self, status: int, value: dict[str, Any], headers: dict[str, str]) -> web.Response:
        self.exchange.status = status
        text = json.dumps(value).encode()
        self.exchange.response = gzip.compress(text) if self.reply.gzip else text
        encoding = {"content-encoding": "gzip"} if self.reply.gzip else {}
        return web.Response(
            status=status,
            body=self.exchange.response,
            content_type="application/json",
            headers=headers | encoding,
        )

    async def _stream(self, *, bad: bool) -> web.StreamResponse:
        encoding = {"content-encoding": "gzip"} if self.reply.gzip else {}
        response = web.StreamResponse(
            headers={"content-type": "text/event-stream; charset=utf-8", **encoding}
        )
        response.enable_chunked_encoding()
        self.exchange.status = 200
        await response.prepare(self.request)
        sent = 0
        for event, size in self.protocol.events(self.reply, self.asked, self.number):
            if bad and await self._went_wrong(response, sent + size):
                return response
            await self._write(response, event)
            sent += size
        if bad and await self._went_wrong(response, sys.maxsize):
            return response
        for event in self.protocol.endings(self.reply, self.asked, self.number):
            await self._write(response, event)
        if self.reply.gzip:
            await self._send(response, self._packer.flush())
        return response

    async def _write(self, response: web.StreamResponse, event: bytes) -> None:
        packed = (
            self._packer.compress(event) + self._packer.flush(zlib.Z_SYNC_FLUSH)
            if self.reply.gzip
            else event
        )
        await self._send(response, packed)

    async def _send(self, response: web.StreamResponse, data: bytes) -> None:
        self.exchange.response += data
        await response.write(data)

    async def _went_wrong(self, response: web.StreamResponse, characters: int) -> bool:
        """Do what the reply says should happen before so many characters are sent.

        True: there is no more to send.
        """
        reply = self.reply
        if reply.hang_after is not None and characters > reply.hang_after:
            await asyncio.Event().wait()
        if reply.break_after is not None and characters > reply.break_after:
            assert self.request.transport is not None
            self.request.transport.abort()
            return True
        if reply.error_after is not None and characters > reply.error_after:
            await self._write(response, self.protocol.error_event(reply.error))
            return True
        return reply.end_after is not None and characters > reply.end_after


def pieces(text: str) -> Iterator[str]:
    """``text`` in pieces of a stream's event."""
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def calls_of(reply: ServerReply, number: int, prefix: str) -> list[tuple[str, str, str]]:
    """The native calls of a reply: id, name and arguments."""
    calls = [(call.name, call.arguments) for call in reply.calls]
    if reply.code is not None:
        calls.insert(0, ("python", json.dumps({"code": reply.code})))
    ids = [*reply.ids, *(f"{prefix}_{number}_{i}" for i in range(len(reply.ids), len(calls)))]
    return [(id, name, arguments) for id, (name, arguments) in zip(ids, calls, strict=True)]


def load_policy(path: Path) -> Policy:
    """The ``respond(messages, n)`` of a Python file, or its ``respond(messages)``."""
    spec = importlib.util.spec_from_file_location("policy", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    respond = module.respond
    if len(inspect.signature(respond).parameters) == 1:
        return lambda messages, _number: respond(messages)
    return respond  # type: ignore[no-any-return]


def main(protocol: Protocol) -> None:
    """Serve until SIGTERM, printing the address first: ``--port N --policy FILE --log DIR``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--policy", type=Path, required=True)
    parser.add_argument("--log", type=Path, required=True)
    given = parser.parse_args()
    given.log.mkdir(parents=True, exist_ok=True)
    server = ProviderServer(protocol, load_policy(given.policy), given.log, given.port)

    async def serve() -> None:
        stop = asyncio.Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(name, stop.set)
        async with server.serving():
            sys.stdout.write(server.address + "\n")
            sys.stdout.flush()
            await stop.wait()

    asyncio.run(serve())
