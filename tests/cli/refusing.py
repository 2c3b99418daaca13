"""A server that takes connections of Temporal's clients and refuses their calls, by as much of
HTTP/2 as that needs.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, repeat

_FINE, _UNAVAILABLE = b"0", b"14"
"""Statuses of gRPC's."""
_DATA, _HEADERS, _SETTINGS, _PING = 0, 1, 4, 6
_ACKNOWLEDGED = 1
_WHOLE, _LAST = 0x4, 0x5
"""Headers in one frame; that end the stream, too."""
_PREFACE = 24
"""Bytes with which a client begins."""


@contextmanager
def refusing(after: int) -> Iterator[str]:
    """The address of a server that is unavailable to all calls ``after`` so many, to which it
    answers an empty message.
    """
    statuses = chain(repeat(_FINE, after), repeat(_UNAVAILABLE))
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            # Closed at the end.
            with suppress(OSError):
                while True:
                    one, _ = listening.accept()
                    threading.Thread(target=_serve, args=(one, statuses), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        host, port = listening.getsockname()
        yield f"{host}:{port}"
        listening.shutdown(socket.SHUT_RDWR)


def _serve(connection: socket.socket, statuses: Iterator[bytes]) -> None:
    with connection, connection.makefile("rb") as received, suppress(OSError):
        received.read(_PREFACE)
        connection.sendall(_frame(_SETTINGS))
        while head := received.read(9):
            body = received.read(int.from_bytes(head[:3], "big"))
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
            if kind in {_SETTINGS, _PING} and not flags & _ACKNOWLEDGED:
                answer = body if kind == _PING else b""
                connection.sendall(_frame(kind, _ACKNOWLEDGED, 0, answer))
            elif kind == _HEADERS:
                connection.sendall(_answer(stream, next(statuses)))


def _answer(stream: int, status: bytes) -> bytes:
    # ":status: 200" is the eighth of HPACK's own table.
    head = b"\x88" + _field(b"content-type", b"application/grpc")
    said = _field(b"grpc-status", status)
    if status != _FINE:
        return _frame(_HEADERS, _LAST, stream, head + said)
    # An uncompressed message of no bytes.
    message = _frame(_DATA, 0, stream, bytes(5))
    return _frame(_HEADERS, _WHOLE, stream, head) + message + _frame(_HEADERS, _LAST, stream, said)


def _frame(kind: int, flags: int = 0, stream: int = 0, body: bytes = b"") -> bytes:
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


def _field(name: bytes, value: bytes) -> bytes:
    """A header as HPACK has one that stands in no table."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value
