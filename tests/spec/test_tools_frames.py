"""What comes over the channel of a process of tools: a frame, or what is none."""

from __future__ import annotations

import socket
import struct

import pytest

from runtime.tools.frames import MOST_BYTES, Broken, Channel


@pytest.mark.parametrize(
    "sent",
    [
        struct.pack(">I", 2) + b"[]",
        struct.pack(">I", 1) + b"{",
        struct.pack(">I", 2) + b'"\xff',
        struct.pack(">I", 10_000) + b"[" * 5_000 + b"]" * 5_000,
        struct.pack(">I", MOST_BYTES + 1),
        struct.pack(">I", 9) + b"{}",
    ],
    ids=["no-object", "no-json", "no-text", "nested", "too-long", "cut-off"],
)
def test_what_is_no_frame_is_one_error(sent: bytes) -> None:
    """A tool that writes where its process speaks ends that alone: whoever listens lives on it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(sent)
        ours.shutdown(socket.SHUT_WR)
        with pytest.raises(Broken):
            Channel(theirs).receive()
