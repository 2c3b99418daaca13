"""URLs that may hold a secret, which then may not stand in a file."""

from __future__ import annotations

from urllib.parse import parse_qsl

from runtime.base.errors import InputError
from runtime.base.places import split_url
from runtime.jobsfile.written.secret_names import is_secret_name


def url_fault(url: str, instead: str) -> str | None:
    """Why ``url`` may not stand in a file, if it may not; ``instead`` of a secret in it."""
    try:
        query = split_url(url).query
    except InputError as error:
        return str(error)
    if has_userinfo(url) or any(is_secret_name(name) for name, _ in parse_qsl(query)):
        return f"expected no secret in the URL; {instead}"
    return None


def has_userinfo(url: str) -> bool:
    """Whether ``url`` names a user or password, with or without a scheme; errors must not repeat
    those.
    """
    return "@" in url.partition("://")[2].partition("/")[0] or "@" in url.partition("/")[0]
