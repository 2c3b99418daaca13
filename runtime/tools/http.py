"""The HTTP client with which a server that has an address is talked to."""

from __future__ import annotations

import asyncio
import codecs
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2
from mcp_types import INTERNAL_ERROR, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from runtime.tools.schemas import bounded_line
from runtime.tools.stdio import MOST_BYTES

MOST_READ = 64 * 1024
"""Bytes of an error response; one that is longer is told without its own words."""
MOST_WORDS = 200

REFUSED = frozenset({401, 403})
"""Statuses with which the protocol has a server refuse whoever asks, before it looks at what for;
in the code of an error of JSON-RPC.
"""

BETWEEN = 1.0
"""Seconds before a stream of events is asked for once more: a server may end each at once, and say
that it may be asked for again at once.
"""

MOST_REDIRECTS = 3
"""Of one message, within its server: to a slash at the end, and to HTTPS. More lead nowhere."""

_HEX = rb"[0-9a-fA-F]"
_FIRST = rb"\\u[dD][89abAB]" + _HEX + rb"{2}"
_SECOND = rb"\\u[dD][c-fC-F]" + _HEX + rb"{2}"
_ESCAPE = re.compile(rb"%b%b|(%b|%b)|\\." % (_FIRST, _SECOND, _FIRST, _SECOND), re.DOTALL)
_BEGUN = re.compile(
    rb"(?<!\\)(?:\\\\)*(\\(?:u%b{0,3})?|%b(?:\\(?:u%b{0,3})?)?)\Z" % (_HEX, _FIRST, _HEX)
)
"""An escape that what comes next may belong to, behind backslashes that are escaped."""
_LONGEST = len(rb"\ud83d\ude0")
"""Bytes of such an escape."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_FRAMING = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers that are of a body as it was sent."""


class HttpClient(httpx2.AsyncClient):
    """Tells which status an error response has, and the beginning of its words: the ``mcp`` package
    says of one without an error of JSON-RPC only that there was one. It tells of a connection that
    breaks likewise, where the package would end all other calls with that one, and of a message
    that is too long. And it reads half a character, as of a text that was cut within one, as
    U+FFFD: the package takes no message with one. ``pause`` is for tests.
    """

    def __init__(
        self, *, pause: Callable[[float], Awaitable[None]] = asyncio.sleep, **how: Any
    ) -> None:
        super().__init__(max_redirects=MOST_REDIRECTS, **how)
        # What is compressed is passed on as it is.
        self.headers["Accept-Encoding"] = "identity"
        self._pause = pause
        self._streamed = False

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        """The response, or one in its place with an error of JSON-RPC. Errors as ``httpx2``'s, but
        for a message that is posted.
        """
        if request.method == "GET":
            before, self._streamed = self._streamed, True
            if before:
                await self._pause(BETWEEN)
        if request.method != "POST":
            return _mended(await super().send(request, **how))
        try:
            return await self._posted(request, **how)
        except httpx2.RequestError as error:
            told = bounded_line(str(error), MOST_WORDS) or type(error).__name__
            return _replaced(request, httpx2.codes.BAD_GATEWAY, _error(INTERNAL_ERROR, told))

    async def _posted(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        response = _mended(await super().send(request, **how))
        # What 404 means is for the package to say: there may have been a session.
        if response.status_code < 400 or response.status_code == 404:
            if response.headers.get("content-type", "").lower().startswith("application/json"):
                # Here, where it is told that it breaks off.
                return await _whole(response)
            return response
        try:
            body = await _body(response, MOST_READ)
        finally:
            await response.aclose()
        refused = response.status_code in REFUSED
        if body is None or refused or not _is_error(body):
            code = response.status_code if refused else INTERNAL_ERROR
            body = _error(code, _told(response, body or b""))
        return _replaced(request, response.status_code, body)


class _Mended(httpx2.AsyncByteStream):
    """UTF-8 of JSON without halves of characters, in pieces."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        begun = b""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        async for part in self._inner:
            data = begun + decoder.decode(part).encode()
            begun = _begun(data)
            whole = data[: len(data) - len(begun)]
            # Most texts have none, and the pattern takes its time for each escape.
            yield _ESCAPE.sub(_mend, whole) if _SURROGATE.search(whole) else whole
        yield begun + decoder.decode(b"", final=True).encode()

    async def aclose(self) -> None:
        """Read no more."""
        await self._inner.aclose()


def _begun(data: bytes) -> bytes:
    """The escape at the end that may go on."""
    start = max(len(data) - _LONGEST, 0)
    # A backslash says something only by the number of those before it.
    while start and data[start - 1] == ord("\\"):
        start -= 1
    last = _BEGUN.search(data, start)
    return last[1] if last else b""


def _mend(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if escape[1] else escape[0]


def _mended(response: httpx2.Response) -> httpx2.Response:
    stream = response.stream
    if isinstance(stream, httpx2.AsyncByteStream) and "Content-Encoding" not in response.headers:
        response.stream = _Mended(stream)
    return response


def _replaced(request: httpx2.Request, status: int, body: bytes) -> httpx2.Response:
    return httpx2.Response(
        status, headers={"content-type": "application/json"}, content=body, request=request
    )


def _error(code: int, message: str) -> bytes:
    """An error of JSON-RPC, to whichever message."""
    error = {"code": code, "message": message}
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()


async def _whole(response: httpx2.Response) -> httpx2.Response:
    """A response that has been read; one with an error in its place if it is too long."""
    try:
        body = await _body(response, MOST_BYTES)
    finally:
        await response.aclose()
    if body is None:
        error = _error(INTERNAL_ERROR, f"a message of more than {MOST_BYTES} bytes")
        return _replaced(response.request, httpx2.codes.BAD_GATEWAY, error)
    headers = [one for one in response.headers.multi_items() if one[0].lower() not in _FRAMING]
    return httpx2.Response(
        response.status_code, headers=headers, content=body, request=response.request
    )


async def _body(response: httpx2.Response, most: int) -> bytes | None:
    """What a response has, if that is not more than ``most`` bytes."""
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > most:
            return None
    return bytes(body)


def _is_error(body: bytes) -> bool:
    try:
        return isinstance(jsonrpc_message_adapter.validate_json(body, by_name=False), JSONRPCError)
    except ValidationError:
        return False


def _told(response: httpx2.Response, body: bytes) -> str:
    told = f"HTTP {response.status_code} {bounded_line(response.reason_phrase, MOST_WORDS)}".strip()
    kind = response.headers.get("content-type", "").lower()
    # A page for browsers begins with what nobody reads.
    readable = kind.startswith(("application/json", "application/problem+json", "text/plain"))
    words = bounded_line(body.decode("utf-8", "replace"), MOST_WORDS) if readable else ""
    return f"{told}: {words}" if words else told
