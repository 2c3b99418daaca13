"""The form of every archived object: a header in canonical JSON, binary parts, and a digest over
all and its key.

::

    "HFA" 0x01                    the format and its version
    varint n, n bytes             the header: canonical JSON, zstd with HEADER_DICTIONARY
    parts                         in the order and with the sizes that the header's "parts" gives
    32 bytes                      SHA-256 of the key, a zero byte, and everything above

The key is part of the digest, so an object that is moved to another key is found out without
storing its key. The digest of an object (in a ``StepRef``, in another object) is this trailer,
tagged ``sha256:``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from runtime.archive.frames import compress, decompress
from runtime.archive.varints import read_varint, varint
from runtime.base.digests import canonical_json
from runtime.base.errors import ObjectCorrupt

FORMAT = 1
_MAGIC = b"HFA" + bytes([FORMAT])
_DIGEST_BYTES = 32

HEADER_DICTIONARY = canonical_json(
    [
        {"kind": "definition", "number": 1, "definition": {}},
        {"kind": "effect", "run": "", "turn": 1, "effect": 0, "value": {"error_type": None,
            "error_message": ""}},
        {"kind": "run", "parent": None, "run": "", "started_at": "2026-01-01T00:00:00.000000+00:00",
            "turn": 1},
        {
            "cost_usd": 0.0, "digest": "sha256:", "effects": {}, "ended_at":
            "2026-01-01T00:00:00.000000+00:00", "execution": None, "kind": "end", "nodes": [],
            "reason": "finished", "result": None, "status": "succeeded",
        },
        {
            "attempt": {"digest": "sha256:", "key": "/turns/"}, "capture": "wire", "changed": [],
            "cost_usd": 0.0, "definition": None, "effects": {}, "execution": {"diff": None, "error":
            None, "result": None, "stderr": "", "stdout": ""}, "finished_at":
            "2026-01-01T00:00:00.000000+00:00", "headers": {"content-type": "application/json",
            "date": "", "server": ""}, "keyframe": False, "kind": "step", "nodes": [],
            "nodes_digest": "sha256:", "parent": {"digest": "sha256:", "key": "/turns/"}, "parts":
            [["response", 1, 1], ["chunks", 1, 1]], "reply": {"finish_reason": "tool_calls",
            "refusal": None, "response_id": "chatcmpl-", "text": "", "thinking": [], "tokens": 1,
            "tool_calls": [{"arguments": "{\"code\":\"", "id": "call_", "name": "python"}]},
            "reset_event_id": 1, "response": {"bytes": 1, "digest": "sha256:"}, "run": "",
            "started_at": "2026-01-01T00:00:00.000000+00:00", "status_code": 200, "turn": 1,
            "usage": {"cache_read": 0, "cache_write": 0, "completion": 1, "prompt": 1, "reported":
            True},
        },
        {
            "base": "/turns/", "capture": "wire", "delta": [["keep", 0, 1], ["add", 1], ["reply"]],
            "depth": 1, "headers": {"accept": "application/json", "content-type":
            "application/json", "user-agent": ""}, "kind": "attempt", "layout": {"bytes": 1,
            "digest": "sha256:", "segments": 1}, "level": 0, "method": "POST", "model": {"api_base":
            "https://api.openai.com/v1", "name": "openai/gpt-", "temperature": 0}, "number": 1,
            "parent": {"digest": "sha256:", "key": "/turns/00000/0000001.step"}, "parts":
            [["recipe", 1, 1], ["wire", 1, 1], ["layout", 1, 1]], "previous": None, "request":
            {"bytes": 1, "digest": "sha256:"}, "run": "", "sources": None, "started_at":
            "2026-01-01T00:00:00.000000+00:00", "temporal_attempt": 1, "turn": 1, "url":
            "https://api.openai.com/v1/chat/completions",
        },
    ]
)  # fmt: skip
"""What headers look like, so that a header costs little more than its values.

Part of format 1: never change it.
"""


@dataclass(frozen=True)
class Part:
    """A binary part, already compressed (or not) by its writer.

    ``size`` is its size when decompressed.
    """

    name: str
    stored: bytes
    size: int


@dataclass(frozen=True)
class ArchivedObject:
    """An object as read, its digest checked."""

    key: str
    digest: str
    header_bytes: bytes
    header: Mapping[str, Any]
    _data: bytes
    _parts_start: int

    @cached_property
    def _offsets(self) -> dict[str, tuple[int, int, int]]:
        offsets, start = {}, self._parts_start
        for part, stored, size in self.header.get("parts", ()):
            offsets[part] = (start, start + stored, size)
            start += stored
        return offsets

    def part(self, name: str) -> memoryview:
        """A part's stored bytes; empty if the object has no such part."""
        start, stop, _ = self._offsets.get(name, (0, 0, 0))
        return memoryview(self._data)[start:stop]

    def frame(self, name: str, dictionary: bytes = b"") -> bytes:
        """A part that is a zstd frame, decompressed; empty if the object has no such part.

        Raises:
            ObjectCorrupt: if it is no frame of that dictionary, or not as long as the header says.
        """
        if name not in self._offsets:
            return b""
        try:
            data = decompress(self.part(name), dictionary)
        except ValueError as error:
            raise ObjectCorrupt(f"{self.key}: part {name}: {error}") from error
        if len(data) != self._offsets[name][2]:
            raise ObjectCorrupt(
                f"{self.key}: part {name} has {len(data)} bytes, not {self._offsets[name][2]}"
            )
        return data


def seal(key: str, header_bytes: bytes, parts: tuple[Part, ...] = ()) -> tuple[bytes, str]:
    """The object's bytes and its digest.

    ``header_bytes`` is what ``header`` made, with the same parts.
    """
    frame = compress(header_bytes, HEADER_DICTIONARY)
    body = b"".join((_MAGIC, varint(len(frame)), frame, *(part.stored for part in parts)))
    trailer = _trailer(key, body)
    return body + trailer, "sha256:" + trailer.hex()


def header(fields: Mapping[str, Any], parts: tuple[Part, ...] = ()) -> bytes:
    """The canonical JSON of a header. ``format`` is in the magic, ``parts`` is added here."""
    return canonical_json(
        {**fields, "parts": [[p.name, len(p.stored), p.size] for p in parts]} if parts else fields
    )


def unseal(key: str, data: bytes, kind: str | None = None) -> ArchivedObject:
    """Check and take apart what ``seal`` made.

    Raises:
        ObjectCorrupt: if the bytes are not exactly an object of this format with this key (and
            kind).
    """
    # The digest first: of bytes that are not what was written, nothing else is worth saying.
    if not is_whole(key, data):
        raise ObjectCorrupt(f"{key}: its bytes do not have the digest that they carry")
    archived = unchecked(key, data)
    if kind is not None and archived.header.get("kind") != kind:
        raise ObjectCorrupt(f"{key}: is a {archived.header.get('kind')}, not a {kind}")
    return archived


def is_whole(key: str, data: bytes) -> bool:
    """Whether some bytes have the digest that they carry, at this key."""
    # A view: an object may have megabytes, and its digest needs no copy of them.
    body, trailer = memoryview(data)[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    return len(data) >= len(_MAGIC) + _DIGEST_BYTES and trailer == _trailer(key, body)


def unchecked(key: str, data: bytes) -> ArchivedObject:
    """What ``unseal`` gives, also where the bytes do not have the digest that they carry.

    Raises:
        ObjectCorrupt: if they cannot be taken apart.
    """
    body = memoryview(data)[:-_DIGEST_BYTES]
    if bytes(body[: len(_MAGIC)]) != _MAGIC:
        raise ObjectCorrupt(f"{key}: not an object of archive format {FORMAT}")
    try:
        length, start = read_varint(body, len(_MAGIC))
        header_bytes = decompress(body[start : start + length], HEADER_DICTIONARY)
        fields = json.loads(header_bytes)
        parts = sum(stored for _, stored, _ in fields.get("parts", ()))
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        raise ObjectCorrupt(f"{key}: its header cannot be read: {error}") from error
    if start + length + parts != len(body):
        raise ObjectCorrupt(
            f"{key}: its parts have {len(body) - start - length} bytes, not {parts}"
        )
    digest = "sha256:" + data[-_DIGEST_BYTES:].hex()
    return ArchivedObject(key, digest, header_bytes, fields, data, start + length)


def sealed(key: str, header_bytes: bytes, data: bytes) -> ArchivedObject:
    """The object of which ``seal`` just made ``data``, as ``unseal`` would read it."""
    length, start = read_varint(memoryview(data), len(_MAGIC))
    digest = "sha256:" + data[-_DIGEST_BYTES:].hex()
    fields = json.loads(header_bytes)
    return ArchivedObject(key, digest, header_bytes, fields, data, start + length)


def is_sealed(data: bytes) -> bool:
    """Whether some bytes begin as an object does."""
    return data.startswith(_MAGIC)


def header_of(data: bytes) -> dict[str, Any]:
    """The header of an object whose key is not known, unchecked.

    Raises:
        ValueError: if there is none.
    """
    length, start = read_varint(memoryview(data), len(_MAGIC))
    fields: dict[str, Any] = json.loads(decompress(data[start : start + length], HEADER_DICTIONARY))
    return fields


def _trailer(key: str, body: bytes | memoryview) -> bytes:
    digest = hashlib.sha256(key.encode() + b"\0")
    digest.update(body)
    return digest.digest()
