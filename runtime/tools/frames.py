"""What a worker and the process of its tools say to each other: JSON objects, each behind its
length in four bytes.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from typing import Any

MOST_BYTES = 64 << 20
"""A frame that is said to be longer is none: whatever wrote it, it was not us."""

_LENGTH = struct.Struct(">I")


class Broken(Exception):
    """What came is no frame, or not all of one."""


class Channel:
    """One end of a pair of sockets. Any thread may send; one receives."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()

    def send(self, frame: dict[str, Any]) -> None:
        """Send one frame.

        Raises:
            OSError: if the other end is gone.
            ValueError: if it holds what is no JSON.
            RecursionError: if it is too deep.
        """
        data = json.dumps(frame).encode()
        with self._sending:
            self._connection.sendall(_LENGTH.pack(len(data)) + data)

    def receive(self) -> dict[str, Any] | None:
        """The next frame; None when the other end is gone.

        Raises:
            Broken: if something else came.
        """
        head = self._exactly(_LENGTH.size)
        if head is None:
            return None
        (length,) = _LENGTH.unpack(head)
        data = self._exactly(length) if length <= MOST_BYTES else None
        if data is None:
            raise Broken(f"a frame of {length} bytes did not come")
        try:
            frame = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise Broken(str(error)) from error
        if not isinstance(frame, dict):
            raise Broken("a frame is an object")
        return frame

    def close(self) -> None:
        """End both directions, also for whoever receives now."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _exactly(self, length: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < length:
            try:
                part = self._connection.recv(min(length - len(parts), 1 << 20))
            # One that was killed may leave a reset in place of an end.
            except ConnectionError:
                part = b""
            if not part:
                return None
            parts += part
        return bytes(parts)
