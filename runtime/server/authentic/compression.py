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

_MOST = 0.8
"""It stays as it is where it would be longer than so much of itself."""

_LEVEL = 3


def compressed(payload: Payload) -> Payload:
    """The payload in another that is shorter; itself where it is short, or hardly would be."""
    if len(payload.data) < LONG:
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
        return Payload.FromString(zstandard.decompress(payload.data))
    except (zstandard.ZstdError, DecodeError) as error:
        raise ValueError(f"no compressed payload: {error}") from error
