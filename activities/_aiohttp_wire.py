"""The wire of the one provider that litellm calls through aiohttp without httpx above it:
``aiohttp_openai``.

litellm has no streams for it: it reads the whole response, which is captured piece by piece while
it is read.
"""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import httpx

from activities._captured import CapturedCall, SentRequest, Silence, TooLarge, current
from activities._charsets import plain_type
from activities._unpacked import Garbled
from activities._unstreamed import played
from runtime.archive.forms import Capture


class AiohttpWire:
    """In place of the ``aiohttp.ClientSession`` that litellm would keep: a session for each call,
    with the call captured.

    ``tls`` is what aiohttp's connector takes: a context, or whether to verify.
    """

    closed = True
    """There is nothing for litellm to close."""

    def __init__(self, tls: Any = True) -> None:
        self._tls = tls

    async def post(self, url: str, **arguments: Any) -> aiohttp.ClientResponse | Played:
        """Post, and read the whole response; it is archived before it is sent if it is part of a
        model call. While a captured response is played, that is the response, and nothing is sent.

        Raises:
            httpx.TransportError: there is no response, or it broke off.
            ArchiveError: the request cannot be archived, and nothing was sent.
        """
        # Before anything else: what is played was archived when it came over the wire.
        if (body := played.get()) is not None:
            return Played(body)
        captured = current.get()
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._tls),
            middlewares=() if captured is None else (_capturing(captured),),
            # No other bound: the call's patience knows a first byte from a later one, aiohttp does
            # not.
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=None if captured is None else captured.limits.connect
            ),
            trust_env=True,
            # What is captured is what came over the wire; it is decoded for the reader alone.
            auto_decompress=captured is None,
        ) as session:
            response = await session.post(url, **arguments)
            await response.read()
            return response


class Played:
    """A captured response, as far as litellm asks aiohttp for one."""

    ok = True

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def json(self) -> Any:
        """The response's JSON."""
        return json.loads(self._body)


def _capturing(captured: CapturedCall) -> aiohttp.ClientMiddlewareType:
    async def capture(
        request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        body = request.body if isinstance(request.body, bytes) else await request.body.as_bytes()
        # Without compression the captured response is the text itself, and any tool reads it.
        request.headers["Accept-Encoding"] = "identity"
        for name in captured.withheld(str(request.url), request.headers):
            request.headers.popall(name, None)
        headers = dict(request.headers)
        await captured.sending(
            SentRequest(Capture.WIRE, body, request.method, str(request.url), headers)
        )
        try:
            async with captured.patience():
                response = await send(request)
            captured.answering(response.status, dict(response.headers))
            await _read(response, captured)
            # aiohttp reads a body once, which was done here; litellm asks the response for it
            # again.
            response._body = captured.said
            kind = response.headers.get("content-type", "")
            if plain_type(kind) != kind:
                response.get_encoding = lambda: "utf-8"  # type: ignore[method-assign]
        except (aiohttp.ClientError, OSError, Silence, TooLarge, Garbled) as error:
            raise _carried(error, captured) from error
        return response

    return capture


async def _read(response: aiohttp.ClientResponse, captured: CapturedCall) -> None:
    pieces = aiter(response.content.iter_any())
    while True:
        async with captured.patience():
            piece = await anext(pieces, None)
        if piece is not None:
            captured.received(piece)
        if piece is None or captured.cut:
            return


def _carried(error: Exception, captured: CapturedCall) -> httpx.TransportError:
    """``error`` as one of httpx's, by which the call's failure is told like any other's."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        error = Silence(f"no connection within {captured.limits.connect:g} s")
    carried = httpx.ReadError(str(error) or type(error).__name__)
    captured.failure = captured.failure or (
        error if isinstance(error, Silence | TooLarge | Garbled) else carried
    )
    return carried
