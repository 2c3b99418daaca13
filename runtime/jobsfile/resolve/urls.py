"""URLs that lead nowhere, and such as may hold a secret, which then may not stand in a file."""

from __future__ import annotations

from urllib.parse import SplitResult, parse_qsl

from runtime.base.errors import InputError
from runtime.base.places import split_url
from runtime.base.quoted import shown
from runtime.jobsfile.written.secret_names import is_secret_name


def url_fault(url: str, instead: str) -> str | None:
    """Why ``url`` may not stand in a file, if it may not; ``instead`` of a secret in it."""
    try:
        parts = split_url(url)
    except InputError as error:
        return str(error)
    if has_userinfo(url) or any(is_secret_name(name) for name, _ in parse_qsl(parts.query)):
        return f"expected no secret in the URL; {instead}"
    if parts.scheme in {"http", "https"} and not parts.hostname:
        return f"expected a URL with a host, got {shown(url)}"
    if not _has_port(parts):
        return f"expected a port from 1 to 65535, got {shown(url)}"
    return None


def _has_port(parts: SplitResult) -> bool:
    """Whether the port can be called, if there is any."""
    try:
        return parts.port is None or parts.port > 0
    except ValueError:
        return False


def has_userinfo(url: str) -> bool:
    """Whether ``url`` names a user or password, with or without a scheme; errors must not repeat
    those.
    """
    return "@" in url.partition("://")[2].partition("/")[0] or "@" in url.partition("/")[0]
