"""What of a call's surroundings may be recorded: headers by an allow-list, URLs and model options
without secrets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from runtime.base.redaction.marks import MASK

# An allow-list, since a provider's next secret header has a name that no deny-list knows.
_HEADERS = frozenset(
    [
        "accept",
        "content-type",
        "content-length",
        "content-encoding",
        "transfer-encoding",
        "user-agent",
        "date",
        "server",
        "anthropic-version",
        "anthropic-beta",
        "openai-beta",
        "openai-version",
        "openai-model",
        "openai-processing-ms",
        "request-id",
        "x-request-id",
        "cf-ray",
        "retry-after",
        "location",
        "x-should-retry",
        "x-stainless-lang",
        "x-stainless-package-version",
        "x-stainless-retry-count",
    ]
)
_HEADER_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-")
_SECRET_NAME = re.compile(
    r"(^|[_\-.])(key|apikey|token|secret|password|passwd|credentials?|authorization"
    r"|signature|sig|cookie)$|api_?key"
    r"|access_key|secret|bearer",
    re.IGNORECASE,
)


def allowed_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that are recorded, names in lower case.

    Nothing outside the list is, whatever it looks like.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    # Where a redirect leads: its query may hold a secret as well as any other URL's.
    if "location" in lowered:
        lowered["location"] = _clean_location(lowered["location"])
    return {
        n: v for n, v in sorted(lowered.items()) if n in _HEADERS or n.startswith(_HEADER_PREFIXES)
    }


def _clean_location(location: str) -> str:
    """One that is no URL is masked: nobody knows what is secret in it."""
    try:
        return clean_url(location)
    except ValueError:
        return MASK


def clean_url(url: str) -> str:
    """``url`` without user, password and fragment, and with secret-looking query values masked."""
    if not url:
        return url
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    query = [
        (n, MASK if _SECRET_NAME.search(n) else v)
        for n, v in parse_qsl(parts.query, keep_blank_values=True)
    ]
    # Brackets stay as they are, or the mask could not be read.
    return urlunsplit((parts.scheme, host, parts.path, urlencode(query, safe="[]"), ""))


def clean_model(options: Mapping[str, Any]) -> dict[str, Any]:
    """Model options with every value whose name looks like a secret masked, at any depth; header
    maps by allow-list.
    """
    return {name: _clean(name, value) for name, value in options.items()}


def _clean(name: str, value: Any) -> Any:
    if name.lower().endswith("headers") and isinstance(value, Mapping):
        # Header maps in a model's options carry credentials of every name, as ``extra_headers``
        # does.
        return allowed_headers({str(n): str(v) for n, v in value.items()})
    if isinstance(value, Mapping):
        return clean_model(value)
    if isinstance(value, (list, tuple)):
        return [_clean("", item) for item in value]
    # A count such as max_tokens is no secret, and only text can be one.
    if isinstance(value, str) and _SECRET_NAME.search(name):
        return MASK
    if isinstance(value, str) and name.lower() in {"api_base", "base_url"}:
        return clean_url(value)
    return value
