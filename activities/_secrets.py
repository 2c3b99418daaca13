"""The secret values of one model call, and their removal from any text that is about to be kept or
shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from runtime.base.environment import environment
from runtime.base.own_headers import own_headers
from runtime.base.redaction.marks import MASK, keyless_mark
from runtime.base.redaction.shapes import mask_shapes
from runtime.base.redaction.variables import SHORTEST, is_path, secret_variables

_NAME = re.compile(
    r"(key|token|secret|password|passwd|credentials?|authorization|auth|signature|sig"
    r"|session|cookie)$",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"^(bearer|basic|token)\s+", re.IGNORECASE)


class Secrets:
    """Values that may stand in no object, heartbeat, log or error.

    Grows while a call finds more of them.
    """

    def __init__(self, values: Iterator[str] | None = None) -> None:
        self._values: set[str] = set()
        self._own: set[str] = set()
        for value in values or ():
            self.add(value)

    @classmethod
    def of_call(cls, options: Mapping[str, Any]) -> Secrets:
        """The environment's, and what a call's options hold under a name that ends like that of a
        secret, and in headers that are not known to be harmless.
        """
        secrets = cls()
        secrets._values |= _of_environment(environment())
        for value in _secret_values(options):
            secrets.add(value)
        secrets._add_urls(options)
        for _, name, value in own_headers(options):
            secrets._own.add(name.lower())
            secrets.add(value)
        return secrets

    def _add_urls(self, options: Mapping[str, Any]) -> None:
        for name, value in options.items():
            if isinstance(value, str) and name.lower().endswith(("api_base", "base_url")):
                self.add_url(value)

    def add(self, value: str) -> None:
        """Treat ``value`` as a secret, without the scheme before it if it is an authorization
        header's.
        """
        bare = _SCHEME.sub("", value.strip())
        if len(bare) >= SHORTEST:
            self._values.add(bare)

    def add_headers(self, headers: Mapping[str, str]) -> None:
        """Treat the values of headers that carry keys as secrets."""
        for name, value in headers.items():
            if _NAME.search(name):
                self.add(value)

    def holds(self, name: str, value: str) -> bool:
        """Whether a header is one that carries keys, or has one of these values."""
        # By its name: a gateway's own word may be too short to be masked wherever it stands.
        if name.lower() in self._own or _NAME.search(name) is not None:
            return True
        return self.mask_known(value) != value

    def add_url(self, url: str) -> None:
        """Treat a URL's password, and the values of its query that go by the name of a secret, as
        secrets.
        """
        with suppress(ValueError):
            parts = urlsplit(url)
            self.add(unquote(parts.password or ""))
            for name, value in parse_qsl(parts.query):
                if _NAME.search(name):
                    # Both forms: an error may have the URL as it was sent, or what was taken out of
                    # it.
                    self.add(value)
                    self.add(quote(value, safe=""))

    def mask(self, text: str) -> str:
        """``text`` with each secret replaced: these values, and what has the form of a key."""
        data = text.encode("utf-8", "surrogatepass")
        masked = self.mask_bytes(data)
        return text if masked is data else masked.decode("utf-8", "surrogatepass")

    def mask_bytes(self, data: bytes) -> bytes:
        """``data`` with each secret replaced, as in ``mask``."""
        return mask_shapes(self.mask_values(data), keyless_mark)

    def mask_known(self, text: str) -> str:
        """``text`` with each of these values replaced, and nothing else."""
        data = text.encode("utf-8", "surrogatepass")
        masked = self.mask_values(data)
        return text if masked is data else masked.decode("utf-8", "surrogatepass")

    def mask_values(self, data: bytes) -> bytes:
        """``data`` with each of these values replaced, the longest first, for one may be part of
        another.
        """
        for value in self._longest_first():
            if (raw := value.encode("utf-8", "surrogatepass")) in data:
                data = data.replace(raw, MASK.encode())
        return data

    def _longest_first(self) -> list[str]:
        return sorted(self._values, key=lambda value: (-len(value), value))


_last: tuple[Mapping[str, str], frozenset[str]] = ({}, frozenset())
"""The environment of the last call, and its secrets."""


def _of_environment(variables: Mapping[str, str]) -> frozenset[str]:
    global _last
    known, values = _last
    # By value: the environment may change between two calls.
    if known != variables:
        secrets = Secrets(value for _, value in secret_variables(variables))
        secrets._add_urls(variables)
        values = frozenset(secrets._values)
        _last = (variables, values)
    return values


def _secret_values(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _secret_values({str(key): item for key, item in value.items()})
        elif isinstance(value, str) and _NAME.search(name) and not is_path(value):
            yield value
