"""Canonical JSON and digests that carry the name of their algorithm (``sha256:…``)."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from typing import Any

_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)
"""One for all: ``json.dumps`` makes an encoder for each value."""


def canonical_json(value: Any) -> bytes:
    """``value`` as UTF-8 JSON with sorted keys and no white space: equal values give equal bytes.

    Raises:
        ValueError: for NaN and infinities, which JSON does not have.
    """
    # Two texts must not become one: a model may write lone surrogates, and they have bytes, too.
    return _CANONICAL.encode(value).encode("utf-8", "surrogatepass")


def digest_bytes(data: bytes) -> str:
    """``sha256:`` and the lower-case hexadecimal digest of ``data``."""
    return tagged(hashlib.sha256(data))


def tagged(digest: hashlib._Hash) -> str:
    """A SHA-256 that was computed piece by piece, as ``digest_bytes`` has it."""
    return f"sha256:{digest.hexdigest()}"


def digest_of(value: Any) -> str:
    """The digest of ``value``'s canonical JSON."""
    return digest_bytes(canonical_json(value))


def joined_digests(digests: Iterable[str]) -> str:
    """Digests (``sha256:…``) as base64 of their bytes, one after the other."""
    return base64.b64encode(
        b"".join(bytes.fromhex(digest.removeprefix("sha256:")) for digest in digests)
    ).decode()


def split_digests(text: str) -> tuple[str, ...]:
    """What ``joined_digests`` was given.

    Raises:
        binascii.Error: if it is no base64.
    """
    data = base64.b64decode(text, validate=True)
    return tuple(f"sha256:{data[start : start + 32].hex()}" for start in range(0, len(data), 32))
