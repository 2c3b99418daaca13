"""The wire of the one provider that litellm calls through aiohttp without httpx above it:
``aiohttp_openai``.

litellm has no streams for it: it reads the whole response, which is recorded piece by piece while
it is read.
"""

from __future__ import annotations

from typing import Any

import aiohttp
import httpx

from activities._recorder import CallRecorder, SentRequest, Silence, TooLarge, current
from runtime.archive.forms import Capture


class AiohttpWire:
    """In place of the ``aiohttp.ClientSession`` that litellm would keep: a session for each call,
    with the call recorded.

    ``tls`` is what aiohttp's connector takes: a context, or whether to verify.
    """

    closed = True
    """There is nothing for litellm to close."""

    def __init__(self, tls: Any = True) -> None:
        self._tls = tls

    async def post(self, url: str, **arguments: Any) -> aiohttp.ClientResponse:
        """Post, and read the whole response; it is archived before it is sent if it is part of a
        model call.

        Raises:
            httpx.TransportError: there is no response, or it broke off.
            ArchiveError: the request cannot be archived, and nothing was sent.
        """
        recorder = current.get()
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._tls),
            middlewares=() if recorder is None else (_recording(recorder),),
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=None if recorder is None else recorder.limits.connect
            ),
            trust_env=True,
            # What is recorded is what came over the wire; it is decoded for the reader alone.
            auto_decompress=recorder is None,
        ) as session:
            response = await session.post(url, **arguments)
            await response.read()
            return response


def _recording(recorder: CallRecorder) -> aiohttp.ClientMiddlewareType:
    async def record(
        request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        body = request.body if isinstance(request.body, bytes) else await request.body.as_bytes()
        # Without compression the recorded response is the text itself, and any tool reads it.
        request.headers["Accept-Encoding"] = "identity"
        headers = dict(request.headers)
        await recorder.sending(
            SentRequest(Capture.WIRE, body, request.method, str(request.url), headers)
        )
        try:
            async with recorder.patience():
                response = await send(request)
            recorder.answering(response.status, dict(response.headers))
            await _read(response, recorder)
            response._body = recorder.content
        except (aiohttp.ClientError, OSError, Silence, TooLarge) as error:
            raise _carried(error, recorder) from error
        return response

    return record


async def _read(response: aiohttp.ClientResponse, recorder: CallRecorder) -> None:
    pieces = aiter(response.content.iter_any())
    while True:
        async with recorder.patience():
            piece = await anext(pieces, None)
        if piece is not None:
            recorder.received(piece)
        if piece is None or recorder.cut:
            return


def _carried(error: Exception, recorder: CallRecorder) -> httpx.TransportError:
    """``error`` as one of httpx's, by which the call's failure is told like any other's."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        error = Silence(f"no connection within {recorder.limits.connect:g} s")
    carried = httpx.ReadError(str(error) or type(error).__name__)
    recorder.failure = recorder.failure or (
        error if isinstance(error, Silence | TooLarge) else carried
    )
    return carried
