"""Which web pages a job may read: the rules of ``urls:``. Pure.

A rule is a host (``docs.python.org``, ``*.example.org``, ``10.0.3.7:8443``), which means https, on
port 443 where it names none, or a URL (``http://localhost:8000/docs/``) beneath which everything is
meant. Addresses that are not the public internet's are for those hosts alone that a rule names by
their address, or as ``localhost``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

PATTERN = (
    r"^(https?://)?(\*\.)?([A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]"
    r"([A-Za-z0-9_-]*[A-Za-z0-9_])?)*|\[[0-9A-Fa-f:.]+\])"
    r"(:[0-9]{1,5})?(/[^\s?#@\\]*)?$"
)
_PORTS = {"https": 443, "http": 80}
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_HOST_WITH_PATH = re.compile(r"^[^/]*/")


@dataclass(frozen=True)
class UrlRule:
    """One entry of ``urls:``.

    ``host`` is in lower case; with ``below`` its subdomains are meant, and not itself.
    """

    scheme: str
    host: str
    below: bool
    port: int
    path: str

    @classmethod
    def of(cls, entry: str) -> UrlRule:
        """The rule that ``entry`` spells.

        Raises:
            ValueError: it spells none; the message says what was expected.
        """
        if re.fullmatch(PATTERN, entry) is None:
            raise ValueError("expected a host, host:port, *.host or a URL without query")
        scheme, separator, rest = entry.rpartition("://")
        if not separator and _HOST_WITH_PATH.match(rest):
            raise ValueError(
                f"expected https:// before a host with a path; did you mean https://{entry}?"
            )
        import httpx

        below = rest.startswith("*.")
        try:
            url = httpx.URL(f"{scheme or 'https'}://{rest.removeprefix('*.')}")
        except httpx.InvalidURL as error:
            raise ValueError(f"expected a URL: {error}") from None
        if not 0 < _port(url) < 65_536:
            raise ValueError("expected a port from 1 to 65535")
        return cls(url.scheme, _host(url), below, _port(url), url.path)

    def covers(self, url: httpx.URL) -> bool:
        """Whether ``url`` is beneath the rule."""
        host = _host(url)
        named = host.endswith("." + self.host) if self.below else host == self.host
        # With the slash: ``/docs`` does not mean ``/docs-private``.
        beneath = url.path == self.path or url.path.startswith(self.path.rstrip("/") + "/")
        return named and beneath and (url.scheme, _port(url)) == (self.scheme, self.port)

    def names(self, address: Address, port: int) -> bool:
        """Whether the rule itself says that this very address, or ``localhost``'s, is meant."""
        if self.below or port != self.port:
            return False
        return address.is_loopback if self.host == "localhost" else self.host == str(address)


def rule_for(url: str, allowed: Sequence[str]) -> UrlRule | None:
    """The first of the rules ``allowed`` that covers ``url``; None for what none covers, or what is
    no plain web address.
    """
    import httpx

    try:
        asked = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError):
        return None
    path = asked.path
    # Where ``..`` or a backslash leads is the server's choice: perhaps out of what a rule names.
    if asked.scheme not in _PORTS or asked.userinfo or ".." in path.split("/") or "\\" in path:
        return None
    return next((rule for rule in map(UrlRule.of, allowed) if rule.covers(asked)), None)


def is_allowed(url: str, allowed: Sequence[str]) -> bool:
    """Whether one of the rules ``allowed`` covers ``url``."""
    return rule_for(url, allowed) is not None


def refused_address(text: str, port: int, allowed: Sequence[str]) -> str | None:
    """Why no connection is made to the address ``text``: what kind it is. None where one may be."""
    # An IPv6 address may name its interface: fe80::1%eth0.
    address = _plain(ipaddress.ip_address(text.partition("%")[0]))
    kind = _kind(address)
    if kind is None or any(rule.names(address, port) for rule in map(UrlRule.of, allowed)):
        return None
    return kind


def _kind(address: Address) -> str | None:
    """What an address is that is not one of the public internet's."""
    # The narrowest word first: a loopback address is a private one, too.
    for kind in ("loopback", "link_local", "multicast", "unspecified", "private", "reserved"):
        if getattr(address, f"is_{kind}"):
            return kind.replace("_", "-")
    return None if address.is_global and not getattr(address, "is_site_local", False) else "private"


def _plain(address: Address) -> Address:
    """The IPv4 address that stands in an IPv6 one, where that is how it is reached."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    # Else a private address would pass for a public one by being written as IPv6.
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return (
        address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1] or address
    )


def _host(url: httpx.URL) -> str:
    """The host as it is asked for: international names in their ASCII form, addresses in their
    shortest.
    """
    host = url.raw_host.decode("ascii").lower().strip("[]")
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host


def _port(url: httpx.URL) -> int:
    return url.port or _PORTS.get(url.scheme, 0)
