"""The binary parts of what came back: the response's bytes, and how they arrived."""

from __future__ import annotations

from runtime.archive.container import ArchivedObject, Part
from runtime.archive.forms import Chunk, NewReceived, StoredReply
from runtime.archive.frames import compress
from runtime.archive.varints import read_varints, varint
from runtime.base.errors import ObjectCorrupt

_MOST_OF_CHUNKS = 16 << 20
"""Bytes: each may be a number, and all are read at once."""


def response_parts(received: NewReceived, reply: StoredReply | None = None) -> tuple[Part, ...]:
    """The response as received, and how it arrived.

    It is compressed against the reply's text, which it repeats.
    """
    parts = []
    if received.response:
        frame = compress(received.response, _words(reply))
        parts.append(Part("response", frame, len(received.response)))
    if received.chunks:
        out: list[bytes] = []
        last = 0
        for chunk in received.chunks:
            # Varints have no sign: a clock that went back counts as no time.
            out += (varint(max(chunk.at_us - last, 0)), varint(chunk.size))
            last = max(chunk.at_us, last)
        times = b"".join(out)
        parts.append(Part("chunks", compress(times), len(times)))
    return tuple(parts)


def read_response(archived: ArchivedObject) -> bytes:
    """The response's bytes: a step's, or what a failed attempt received.

    Raises:
        ObjectCorrupt: if they cannot be read.
    """
    reply = archived.header.get("reply")
    return archived.frame(
        "response", _words(None if reply is None else StoredReply.model_validate(reply))
    )


def read_chunks(archived: ArchivedObject) -> tuple[Chunk, ...]:
    """How the response arrived.

    Raises:
        ObjectCorrupt: if it cannot be read.
    """
    try:
        numbers = read_varints(archived.frame("chunks", most=_MOST_OF_CHUNKS))
        pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
    except (ValueError, IndexError) as error:
        raise ObjectCorrupt(f"{archived.key}: part chunks: {error}") from error
    chunks, at = [], 0
    for wait, size in pairs:
        at += wait
        chunks.append(Chunk(at_us=at, size=size))
    return tuple(chunks)


def _words(reply: StoredReply | None) -> bytes:
    """What of a reply its response repeats."""
    if reply is None:
        return b""
    calls = "".join(call.arguments for call in reply.tool_calls)
    return f"{reply.text}{calls}".encode("utf-8", "surrogatepass")
