"""Connections for web pages: only to addresses that the jobs file allows, decided on the address
that is connected to.

A name is looked up once, its addresses are checked, and the connection goes to one of those; so it
does not matter what the name says a moment later, or how an address is spelled. Where the
environment names a proxy (``HTTPS_PROXY`` and its like), the proxy looks names up, and what it
reaches is its operator's choice: only addresses in the URL itself are checked then.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable, Sequence
from typing import Any

import httpcore
import httpx

from runtime.base.proxies import proxy_of
from runtime.base.url_rules import refused_address


class GuardedTransport(httpx.AsyncBaseTransport):
    """httpx's own transport, for the rules ``allowed``, over connections that are checked."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = allowed
        self._made: dict[str | None, httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Carry one request.

        Raises:
            PermissionError: the host is at an address that no rule names.
        """
        proxy = proxy_of(request.url.scheme, request.url.host)
        if proxy is not None:
            _check_literal(request.url, self._allowed)
        if proxy not in self._made:
            self._made[proxy] = self._transport(proxy)
        return await self._made[proxy].handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections."""
        for transport in self._made.values():
            await transport.aclose()

    def _transport(self, proxy: str | None) -> httpx.AsyncHTTPTransport:
        transport = httpx.AsyncHTTPTransport(proxy=proxy, trust_env=True)
        if proxy is None:
            # httpx has no parameter for what makes its pool's connections.
            transport._pool = httpcore.AsyncConnectionPool(
                ssl_context=httpx.create_ssl_context(), network_backend=_Guard(self._allowed)
            )
        return transport


class _Guard(httpcore.AsyncNetworkBackend):
    """Connects to those of a host's addresses that may be connected to, in their order."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = allowed
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failure: Exception | None = None
        for address in await self._addresses(host, port):
            try:
                return await self._inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore.ConnectError(f"{host} has no address")

    async def _addresses(self, host: str, port: int) -> list[str]:
        try:
            places = await asyncio.get_running_loop().getaddrinfo(
                host, port, type=socket.SOCK_STREAM
            )
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(str(error)) from error
        addresses = list(dict.fromkeys(str(place[4][0]) for place in places))
        refused = {address: refused_address(address, port, self._allowed) for address in addresses}
        open_ones = [address for address in addresses if refused[address] is None]
        if addresses and not open_ones:
            raise _refusal(host, addresses[0], port, refused[addresses[0]])
        return open_ones

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


def _check_literal(url: httpx.URL, allowed: Sequence[str]) -> None:
    """Check the address that a URL spells out. Names are for the proxy to look up."""
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        address = str(ipaddress.ip_address(url.host.strip("[]")))
    except ValueError:
        # Of one name it is known where it leads, whoever looks it up.
        if url.host != "localhost" and not url.host.endswith(".localhost"):
            return
        address = "127.0.0.1"
    if (kind := refused_address(address, port, allowed)) is not None:
        raise _refusal(url.host, address, port, kind)


def _refusal(host: str, address: str, port: int, kind: str | None) -> PermissionError:
    named = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    return PermissionError(
        f"{host!r} is at {address}, a {kind} address: such are read only where 'urls' names them"
        f" ({named})"
    )
