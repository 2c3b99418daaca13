"""The form of every archived object: a header in canonical JSON, binary parts, and a digest over
what they say and the key.

::

    "HFA" 0x02                    the format and its version
    varint n, n bytes             the header: canonical JSON, zstd with HEADER_DICTIONARY
    a varint a part               their stored sizes, in the order of the header's "parts"
    parts
    32 bytes                      SHA-256 of what the object says
    8 bytes                       the first of the SHA-256 of everything above

What it says is its key and a zero byte, and then, each with a varint of its size before it, the
header's JSON and every part: the part ``wire`` decompressed, the others as they are stored. So a
header and the text of a request may be stored in another way, as in a pack, and the object is the
same.

The key is part of the digest, so an object that is moved to another key is found out without
storing its key. The digest of an object (in a ``StepRef``, in another object) is that of what it
says, tagged ``sha256:``. The bytes at the end tell damage before anything is made of it.

Format 1, which is read and no longer written, has the stored sizes in its header, and ends with its
digest: SHA-256 of the key, a zero byte, and everything above.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from runtime.archive.dictionaries import WIRE_DICTIONARY
from runtime.archive.frames import MOST_BYTES, compress, decompress
from runtime.archive.varints import read_varint, varint
from runtime.base.digests import canonical_json
from runtime.base.errors import ObjectCorrupt

FORMAT = 2
_NAME = b"HFA"
_MAGIC_1, _MAGIC = _NAME + b"\x01", _NAME + bytes([FORMAT])
_DIGEST_BYTES, _CHECK_BYTES = 32, 8
_MOST_OF_A_HEADER = 256 << 20
"""Bytes: what a header says takes many times as many to tell."""

WIRE = "wire"
"""The part whose text an object's digest covers, however it is stored."""

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

Part of both formats: never change it.
"""


@dataclass(frozen=True)
class Part:
    """A binary part, already compressed (or not) by its writer.

    ``size`` is its size when decompressed; ``text`` what a part named ``WIRE`` is then.
    """

    name: str
    stored: bytes | memoryview
    size: int
    text: bytes = b""

    @property
    def said(self) -> bytes | memoryview:
        """What the object's digest covers of it.

        Raises:
            ValueError: if that is its text, and it has none.
        """
        if self.name == WIRE and len(self.text) != self.size:
            raise ValueError(f"the part {WIRE} needs its text")
        return self.text if self.name == WIRE else self.stored


@dataclass(frozen=True)
class ArchivedObject:
    """An object as read, its digest checked. ``format`` is the one that it is written in."""

    key: str
    digest: str
    header_bytes: bytes
    header: Mapping[str, Any]
    format: int
    _data: bytes
    _stored: tuple[int, ...]
    _parts_start: int

    @property
    def size(self) -> int:
        """Bytes that it takes, stored and with its header."""
        return len(self._data) + len(self.header_bytes)

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the parts, in order."""
        return tuple(self._offsets)

    def parts(self) -> tuple[Part, ...]:
        """The parts as their writer gave them.

        Raises:
            ObjectCorrupt: if the text of ``WIRE`` cannot be read.
        """
        return tuple(
            Part(
                name,
                self.part(name),
                size,
                self.frame(WIRE, WIRE_DICTIONARY) if name == WIRE else b"",
            )
            for name, (_, _, size) in self._offsets.items()
        )

    @cached_property
    def _offsets(self) -> dict[str, tuple[int, int, int]]:
        offsets, start = {}, self._parts_start
        for (name, *_, size), stored in zip(
            self.header.get("parts", ()), self._stored, strict=True
        ):
            offsets[str(name)] = (start, start + stored, size)
            start += stored
        return offsets

    def part(self, name: str) -> memoryview:
        """A part's stored bytes; empty if the object has no such part."""
        start, stop, _ = self._offsets.get(name, (0, 0, 0))
        return memoryview(self._data)[start:stop]

    def frame(self, name: str, dictionary: bytes = b"", most: int = MOST_BYTES) -> bytes:
        """A part that is a zstd frame, decompressed; empty if the object has no such part.

        Raises:
            ObjectCorrupt: if it is no frame of that dictionary, not as long as the header says, or
                longer than ``most``.
        """
        if name not in self._offsets:
            return b""
        try:
            data = decompress(self.part(name), dictionary, min(self._offsets[name][2], most))
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
    digest = said(key, header_bytes, (part.said for part in parts))
    return assembled(header_bytes, [part.stored for part in parts], digest), digest


def assembled(header_bytes: bytes, stored: Sequence[bytes | memoryview], digest: str) -> bytes:
    """The bytes of an object whose digest is known."""
    frame = compress(header_bytes, HEADER_DICTIONARY)
    sizes = (varint(len(part)) for part in stored)
    trailer = bytes.fromhex(digest.removeprefix("sha256:"))
    data = b"".join((_MAGIC, varint(len(frame)), frame, *sizes, *stored, trailer))
    return data + _check(data)


def header(fields: Mapping[str, Any], parts: tuple[Part, ...] = ()) -> bytes:
    """The canonical JSON of a header. ``format`` is in the magic, ``parts`` is added here."""
    return canonical_json(
        {**fields, "parts": [[p.name, p.size] for p in parts]} if parts else fields
    )


def referred(archived: ArchivedObject, digest: str) -> ArchivedObject:
    """An object, if it is the one that is referred to by ``digest``.

    Raises:
        ObjectCorrupt: if it is another.
    """
    if archived.digest != digest:
        raise ObjectCorrupt(
            f"{archived.key} has digest {archived.digest}, not {digest} by which it is referred to"
        )
    return archived


def unseal(key: str, data: bytes, kind: str | None = None) -> ArchivedObject:
    """Check and take apart what ``seal`` made.

    Raises:
        ObjectCorrupt: if the bytes are not exactly an object of a format that is known with this
            key (and kind).
    """
    # The bytes first: of what is not as it was written, nothing else is worth saying.
    archived = unchecked(key, data) if _is_as_written(key, data) else None
    if archived is None or not (archived.format == 1 or _says_what_was_said(archived)):
        raise ObjectCorrupt(f"{key}: {_fault(data)}")
    if kind is not None and archived.header.get("kind") != kind:
        raise ObjectCorrupt(f"{key}: is a {archived.header.get('kind')}, not a {kind}")
    return archived


def is_whole(key: str, data: bytes) -> bool:
    """Whether some bytes have the digest that they carry, at this key."""
    with suppress(ObjectCorrupt):
        return bool(unseal(key, data))
    return False


def unchecked(key: str, data: bytes) -> ArchivedObject:
    """What ``unseal`` gives, also where the bytes do not have the digest that they carry.

    Raises:
        ObjectCorrupt: if they cannot be taken apart.
    """
    body = memoryview(data)[: _end(data)]
    if not is_sealed(data):
        raise ObjectCorrupt(f"{key}: not an object of archive format {FORMAT}, or of one before")
    try:
        length, start = read_varint(body, len(_MAGIC))
        frame = body[start : start + length]
        header_bytes = decompress(frame, HEADER_DICTIONARY, _MOST_OF_A_HEADER)
        archived = _taken_apart(key, header_bytes, data, start + length)
        parts = sum(archived._stored)
    except (ValueError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ObjectCorrupt(f"{key}: its header cannot be read: {error}") from error
    there = len(body) - archived._parts_start
    if there != parts:
        raise ObjectCorrupt(f"{key}: its parts have {there} bytes, not {parts}")
    return archived


def sealed(key: str, header_bytes: bytes, data: bytes) -> ArchivedObject:
    """The object of which ``seal`` just made ``data``, as ``unseal`` would read it."""
    length, start = read_varint(memoryview(data), len(_MAGIC))
    return _taken_apart(key, header_bytes, data, start + length)


def _taken_apart(key: str, header_bytes: bytes, data: bytes, start: int) -> ArchivedObject:
    """The object whose header's frame ends at ``start``."""
    fields = json.loads(header_bytes)
    parts = fields.get("parts", ())
    if data.startswith(_MAGIC_1):
        stored = [size for _, size, _ in parts]
    else:
        stored = []
        for _, _ in parts:
            size, start = read_varint(memoryview(data), start)
            stored.append(size)
    if len({str(name) for name, *_ in parts}) != len(stored):
        raise ValueError("two of its parts have one name")
    if any(type(size) is not int or size < 0 for _, *sizes in parts for size in sizes):
        raise ValueError("the size of a part is no number of bytes")
    end = _end(data)
    digest = "sha256:" + data[end : end + _DIGEST_BYTES].hex()
    return ArchivedObject(
        key, digest, header_bytes, fields, data[len(_NAME)], data, tuple(stored), start
    )


def is_sealed(data: bytes) -> bool:
    """Whether some bytes begin as an object does."""
    return data.startswith((_MAGIC_1, _MAGIC))


def header_of(data: bytes) -> dict[str, Any]:
    """The header of an object whose key is not known, unchecked.

    Raises:
        ValueError: if there is none.
    """
    try:
        length, start = read_varint(memoryview(data), len(_MAGIC))
    except IndexError:
        raise ValueError("it ends before its header") from None
    fields: dict[str, Any] = json.loads(decompress(data[start : start + length], HEADER_DICTIONARY))
    return fields


def said(key: str, header_bytes: bytes, parts: Iterable[bytes | memoryview]) -> str:
    """The digest of an object that says this: the text of the part ``WIRE``, and the other parts as
    they are stored.
    """
    digest = hashlib.sha256(key.encode() + b"\0")
    for each in (header_bytes, *parts):
        # Its size, or a part's end could be the next one's beginning.
        digest.update(varint(len(each)))
        digest.update(each)
    return f"sha256:{digest.hexdigest()}"


def _end(data: bytes) -> int:
    """Where the digest of an object begins."""
    after = 0 if data.startswith(_MAGIC_1) else _CHECK_BYTES
    return max(len(data) - _DIGEST_BYTES - after, 0)


def _check(data: bytes | memoryview) -> bytes:
    return hashlib.sha256(data).digest()[:_CHECK_BYTES]


def _is_as_written(key: str, data: bytes) -> bool:
    """Whether the bytes are those that their end speaks of."""
    if data.startswith(_MAGIC):
        # A view: an object may have megabytes, and needs no copy of them.
        return _check(memoryview(data)[:-_CHECK_BYTES]) == data[-_CHECK_BYTES:]
    digest = hashlib.sha256(key.encode() + b"\0")
    digest.update(memoryview(data)[:-_DIGEST_BYTES])
    return digest.digest() == data[-_DIGEST_BYTES:]


def _says_what_was_said(archived: ArchivedObject) -> bool:
    parts = (
        archived.frame(WIRE, WIRE_DICTIONARY) if name == WIRE else archived.part(name)
        for name in archived.names
    )
    try:
        return archived.digest == said(archived.key, archived.header_bytes, parts)
    except ObjectCorrupt:
        return False


def _fault(data: bytes) -> str:
    """What is wrong with bytes that are not an object as it was written."""
    if data.startswith(_NAME) and data[len(_NAME) : len(_MAGIC)] > _MAGIC[len(_NAME) :]:
        return (
            f"is damaged, or of archive format {data[len(_NAME)]}: this release reads those up to"
            f" {FORMAT}"
        )
    return "its bytes do not have the digest that they carry"
