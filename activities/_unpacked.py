"""A compressed response, unpacked while it arrives and no further than is kept.

A few kilobytes may say gigabytes: so nothing below, neither httpx nor aiohttp, unpacks what is
captured.
"""

from __future__ import annotations

import zlib

_EITHER = 32 + zlib.MAX_WBITS
"""As zlib says it: a header of gzip's or of zlib's."""

_BARE = -zlib.MAX_WBITS
"""No header, as some servers send what they call ``deflate``."""

_KNOWN = ("gzip", "x-gzip", "deflate")


class Garbled(Exception):
    """A response is not what its ``content-encoding`` says, or is in one that was not asked
    for.
    """


class Unpacked:
    """What a response says whose headers name the encoding ``encoding``: its first ``most`` bytes.

    ``full`` tells that it says more.
    """

    def __init__(self, encoding: str, most: int) -> None:
        self.content = bytearray()
        self.full = False
        self._encoding = encoding
        self._most = most
        self._inflating = zlib.decompressobj(_EITHER)
        self._begun = False

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        """The part of ``data`` that was read, and what it says.

        Raises:
            Garbled: it cannot be read.
        """
        if self._encoding not in _KNOWN:
            raise Garbled(f"the response came as {self._encoding!r}, which was not asked for")
        # zlib would add what follows the end to what it has of it, again and again.
        if self._inflating.eof:
            return data, b""
        try:
            said = self._inflated(data)
        except zlib.error as error:
            raise Garbled(
                f"the response is not the {self._encoding} that it says it is: {error}"
            ) from error
        if len(said) > self._most - len(self.content):
            self.full = True
            said = said[: self._most - len(self.content)]
            data = data[: len(data) - len(self._inflating.unconsumed_tail)]
        self.content += said
        return data, said

    def _inflated(self, data: bytes) -> bytes:
        # A byte more than is kept tells that there is more.
        room = self._most + 1 - len(self.content)
        begun, self._begun = self._begun, True
        try:
            return self._inflating.decompress(data, room)
        except zlib.error:
            if begun or self._encoding != "deflate":
                raise
        self._inflating = zlib.decompressobj(_BARE)
        return self._inflating.decompress(data, room)
