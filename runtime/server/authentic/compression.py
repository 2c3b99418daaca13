"""The compression of long payloads, by the codec that signs them.

A history keeps each payload for as long as the server keeps the run, and hands all of them to each
worker that takes the run up. Those that are short stay readable to Temporal's own tools, as most
are: calls, replies, verdicts, signals. Of long ones these show too much to be read; the endpoint of
``holdfast codec`` shows them whole.
"""

from __future__ import annotations

import zstandard
from google.protobuf.message import DecodeError
from temporalio.api.common.v1 import Payload

COMPRESSED = b"holdfast/zstd"
"""The encoding of a compressed payload: a frame of zstd (RFC 8878) of the payload that it is."""

LONG = 4_096
"""Bytes of data from which a payload is compressed."""

MOST_BYTES = 8 << 20
"""Bytes of data up to which one is: more than jobs give one another, and little to whoever reads
it. One that says that it is longer is none of ours.
"""

_MOST = 0.8
"""It stays as it is where it would be longer than so much of itself."""

_METADATA = 64 << 10
"""What a payload may have besides its data."""

_LEVEL = 3


def compressed(payload: Payload) -> Payload:
    """The payload in another that is shorter; itself where it is short, very long, or hardly would
    be.
    """
    if not LONG <= len(payload.data) <= MOST_BYTES:
        return payload
    # Metadata is a map: only so are equal payloads equal bytes.
    data = zstandard.compress(payload.SerializeToString(deterministic=True), _LEVEL)
    if len(data) > _MOST * len(payload.data):
        return payload
    return Payload(metadata={"encoding": COMPRESSED}, data=data)


def decompressed(payload: Payload) -> Payload:
    """The payload that was compressed, if it was.

    Raises:
        ValueError: if it holds none.
    """
    if payload.metadata.get("encoding") != COMPRESSED:
        return payload
    try:
        # Anybody may say how long it is: that much would be set aside before it is looked at.
        if not 0 <= zstandard.frame_content_size(payload.data) <= MOST_BYTES + _METADATA:
            raise ValueError("no compressed payload: it says no length, or one of too much")
        return Payload.FromString(zstandard.decompress(payload.data))
    except (zstandard.ZstdError, DecodeError) as error:
        raise ValueError(f"no compressed payload: {error}") from error
