"""A server that answers every call of a model with the same bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from model_calls import KEY, Job


class Gateway:
    """A server that answers every POST with one body, and counts them."""

    def __init__(
        self,
        body: bytes,
        content_type: str = "application/json",
        *,
        status: int = 200,
        **headers: str,
    ) -> None:
        self.body, self.status = body, status
        self.headers = {"content-type": content_type, **headers}
        self.requests: list[bytes] = []

    async def __aenter__(self) -> str:
        app = web.Application()
        app.router.add_post("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        self.requests.append(await request.read())
        return web.Response(status=self.status, body=self.body, headers=self.headers)


@asynccontextmanager
async def answering_in_bytes(response: bytes) -> AsyncIterator[str]:
    """A server that answers every request with these bytes, its status and headers among them, and
    closes the connection.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.partition(b"content-length:")[2].split()[0]))
        writer.write(response)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def job_at(address: str, name: str, **options: Any) -> Job:
    """A job whose model is at ``address``."""
    if name.startswith("aiohttp_openai"):
        base = f"{address}/v1/chat/completions"
    else:
        base = address if name.startswith("anthropic") else f"{address}/v1"
    return Job({"name": name, "api_base": base, "api_key": KEY, **options})
