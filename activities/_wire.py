"""The HTTP transports under litellm's clients, which see the bytes that the server sees.

``AsyncWire`` and ``SyncWire`` carry every request as httpx would. A request that is part of a model
call (a POST of JSON while a ``CapturedCall`` is current, but no question about the model; and
whatever follows it to the same host, or to where it was redirected) is archived before it is sent,
and what comes back is captured as it arrives; behind that, ``AsyncWire`` merges a stream's events.
Other requests, such as an exchange of tokens, are carried and never captured, for they hold
secrets.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx

from activities._captured import CapturedCall, SentRequest, Silence, current
from activities._charsets import plain_type
from activities._merged_events import MergedEvents
from activities._unpacked import Garbled, Unpacked
from activities._unstreamed import played_to
from runtime.archive.forms import Capture
from runtime.base.proxies import proxy_of

MOST_UNSEEN = 16 * 1024 * 1024
"""Bytes of a response that is not captured, as it came and unpacked."""

WRITE_SECONDS = 60.0
"""How long a write of a piece of the request may take."""

_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=5.0)

_PROBES = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}

_KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in _PROBES.items()
        if hasattr(socket, name)
    ),
]
"""A provider that has vanished is noticed in 20 s, while one that is there may think for as long as
``first_byte``.
"""

Verify = ssl.SSLContext | bool


class AsyncWire(httpx.AsyncBaseTransport):
    """A capturing transport with one connection pool for each event loop and proxy."""

    def __init__(self, verify: Verify = True) -> None:
        self._verify = verify
        self._pools: WeakKeyDictionary[
            asyncio.AbstractEventLoop, dict[str | None, httpx.AsyncHTTPTransport]
        ]
        self._pools = WeakKeyDictionary()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Carry one request; see the module."""
        # Before anything else: what is played was archived when it came over the wire.
        if (response := played_to(request)) is not None:
            return response
        proxy = proxy_of(request.url.scheme, request.url.host)
        pool = self._pool(proxy)
        captured = current.get()
        if captured is None or not _is_part_of(request, captured):
            return _unseen(request, await pool.handle_async_request(_plainly(request)))
        # Read whole, since the bytes are archived before the first of them leaves.
        body = await request.aread()
        # Reading is timed by the captured, which knows a first byte from a later one.
        _prepare(request, captured, read=None)
        await captured.sending(_sent(request, body))
        try:
            async with captured.patience():
                response = await pool.handle_async_request(request)
        except Exception as error:
            raise _carried(error, captured, request, proxy) from error
        _answering(captured, response)
        merged = MergedEvents(is_refused=not captured.succeeded)
        response.stream = _AsyncCapture(response.stream, captured, request, merged)
        return response

    async def aclose(self) -> None:
        """Close the pools of the running event loop."""
        for pool in self._pools.pop(asyncio.get_running_loop(), {}).values():
            await pool.aclose()

    def _pool(self, proxy: str | None) -> httpx.AsyncHTTPTransport:
        # A pool's connections belong to the loop that opened them, and a process may run several.
        pools = self._pools.setdefault(asyncio.get_running_loop(), {})
        if proxy not in pools:
            pools[proxy] = httpx.AsyncHTTPTransport(
                verify=self._verify, limits=_LIMITS, proxy=proxy, socket_options=_KEEPALIVE
            )
        return pools[proxy]


class SyncWire(httpx.HTTPTransport):
    """The same for the few providers that litellm calls in a thread.

    Their silence is bounded by httpx's own timeouts.
    """

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Carry one request; see the module."""
        if (response := played_to(request)) is not None:
            return response
        captured = current.get()
        if captured is None or not _is_part_of(request, captured):
            return _unseen(request, super().handle_request(_plainly(request)))
        body = request.read()
        _prepare(request, captured, read=captured.limits.first_byte)
        captured.sending_now(_sent(request, body))
        try:
            response = super().handle_request(request)
        except Exception as error:
            raise _carried(error, captured, request) from error
        _answering(captured, response)
        response.stream = _SyncCapture(response.stream, captured, request)
        return response


class _AsyncCapture(httpx.AsyncByteStream):
    """A response's stream, captured as it is read, and handed on as ``merged``."""

    def __init__(
        self, inner: object, captured: CapturedCall, request: httpx.Request, merged: MergedEvents
    ) -> None:
        assert isinstance(inner, httpx.AsyncByteStream)
        self._inner = inner
        self._captured = captured
        self._request = request
        self._merged = merged

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = aiter(self._inner)
        try:
            while True:
                try:
                    async with self._captured.patience():
                        piece = await anext(pieces, None)
                    kept = None if piece is None else self._captured.received(piece)
                except Exception as error:
                    broken = _carried(error, self._captured, self._request)
                    # What came before it broke off is heard, too.
                    if rest := self._merged.end():
                        yield rest
                    raise broken from error
                if kept is not None and (whole := self._merged.feed(kept)):
                    yield whole
                # Of an error enough was read; the rest of an endless one would never come to its
                # end.
                if kept is None or self._captured.cut:
                    break
            if rest := self._merged.end():
                yield rest
        finally:
            # Where the call is given up, nobody asks for more.
            self._captured.unheard = self._merged.held

    async def aclose(self) -> None:
        await self._inner.aclose()


class _SyncCapture(httpx.SyncByteStream):
    def __init__(self, inner: object, captured: CapturedCall, request: httpx.Request) -> None:
        assert isinstance(inner, httpx.SyncByteStream)
        self._inner = inner
        self._captured = captured
        self._request = request

    def __iter__(self) -> Iterator[bytes]:
        try:
            for piece in self._inner:
                yield self._captured.received(piece)
                if self._captured.cut:
                    return
        except Exception as error:
            raise _carried(error, self._captured, self._request) from error

    def close(self) -> None:
        self._inner.close()


class _Bounded(httpx.AsyncByteStream, httpx.SyncByteStream):
    """The stream of a response that nobody captures, which breaks off where it is too large.

    Raises:
        httpx.ReadError: if it is, or is compressed otherwise than any that was asked for.
    """

    def __init__(self, inner: object, request: httpx.Request, encoding: str) -> None:
        self._inner = inner
        self._request = request
        self._left = MOST_UNSEEN
        self._unpacked = Unpacked(encoding, MOST_UNSEEN) if encoding else None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert isinstance(self._inner, httpx.AsyncByteStream)
        async for piece in self._inner:
            yield self._checked(piece)

    def __iter__(self) -> Iterator[bytes]:
        assert isinstance(self._inner, httpx.SyncByteStream)
        for piece in self._inner:
            yield self._checked(piece)

    def _checked(self, piece: bytes) -> bytes:
        self._left -= len(piece)
        said = piece
        if self._unpacked is not None:
            try:
                said = self._unpacked.feed(piece)[1]
            except Garbled as error:
                raise httpx.ReadError(str(error), request=self._request) from error
        if self._left < 0 or (self._unpacked is not None and self._unpacked.full):
            raise httpx.ReadError(
                f"the response did not end within {MOST_UNSEEN:,} bytes", request=self._request
            )
        return said

    async def aclose(self) -> None:
        assert isinstance(self._inner, httpx.AsyncByteStream)
        await self._inner.aclose()

    def close(self) -> None:
        assert isinstance(self._inner, httpx.SyncByteStream)
        self._inner.close()


def _plainly(request: httpx.Request) -> httpx.Request:
    request.headers["accept-encoding"] = "identity"
    return request


def _unseen(request: httpx.Request, response: httpx.Response) -> httpx.Response:
    """A response that is not captured, bounded: an exchange of tokens, or what a model can do."""
    encoding = _unpacked_here(response)
    response.stream = _Bounded(response.stream, request, "" if encoding == "identity" else encoding)
    return response


def _unpacked_here(response: httpx.Response) -> str:
    """The content encoding, which httpx would undo without a bound, and does not hear of; nor of a
    charset that is none.
    """
    if (said := response.headers.get("content-type")) is not None:
        response.headers["content-type"] = plain_type(said)
    return str(response.headers.pop("content-encoding", "")).strip().lower()


def _is_part_of(request: httpx.Request, captured: CapturedCall) -> bool:
    """Whether a request is the call's, or goes on with it: a reply that is fetched when it is ready
    comes with a GET.
    """
    if request.method in {"GET", "HEAD"}:
        return captured.goes_on_at(request.url.host) and not request.url.path.endswith("/api/show")
    return _is_model_call(request)


def _is_model_call(request: httpx.Request) -> bool:
    if request.url.path.endswith("/api/show"):
        # litellm asks Ollama what it knows of a model, before and after a call, and takes no answer
        # for one.
        return False
    if request.method != "POST":
        return False
    said = request.headers.get("content-type")
    return "json" in said if said is not None else _is_json_object(request)


def _is_json_object(request: httpx.Request) -> bool:
    """Whether a request that does not say what it holds, as Ollama's do not, holds a JSON
    object.
    """
    try:
        return request.content.startswith(b"{")
    except httpx.RequestNotRead:
        return False


def _prepare(request: httpx.Request, captured: CapturedCall, *, read: float | None) -> None:
    # Without compression the captured response is the text itself, and any tool reads it.
    _plainly(request)
    # httpx leaves out one header alone, and providers have keys in others.
    for name in captured.withheld(str(request.url), request.headers):
        del request.headers[name]
    connect = captured.limits.connect
    seconds = {"connect": connect, "read": read, "write": WRITE_SECONDS, "pool": None}
    request.extensions = {**request.extensions, "timeout": seconds}


def _answering(captured: CapturedCall, response: httpx.Response) -> None:
    captured.answering(response.status_code, response.headers)
    # Unpacked as it is captured.
    _unpacked_here(response)


def _sent(request: httpx.Request, body: bytes) -> SentRequest:
    return SentRequest(Capture.WIRE, body, request.method, str(request.url), dict(request.headers))


def _carried(
    error: Exception, captured: CapturedCall, request: httpx.Request, proxy: str | None = None
) -> httpx.TransportError:
    """``error`` as one upon which litellm does not send the request again by itself, as it does for
    two of httpx's. A ``proxy`` that was to carry the request is named: a server of this machine is
    asked through it too.
    """
    unreached = isinstance(error, httpx.ConnectTimeout | httpx.ConnectError | httpx.ProxyError)
    captured.reached &= not unreached
    by = f" (by the environment's proxy {_place(proxy)})" if unreached and proxy else ""
    if isinstance(error, httpx.ConnectTimeout):
        error = Silence(f"no connection within {captured.limits.connect:g} s{by}")
    elif by:
        error = httpx.ConnectError(f"{error}{by}", request=request)
    captured.failure = captured.failure or error
    if isinstance(error, Silence | httpx.TimeoutException):
        return httpx.ReadTimeout(str(error), request=request)
    return httpx.ReadError(str(error) or type(error).__name__, request=request)


def _place(url: str) -> str:
    """Host and port: a proxy's URL may have its password."""
    return urlsplit(url).netloc.rpartition("@")[2]
