"""A relay before a server whose connections can be broken off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Relay:
    """Passes bytes on between clients and the server at ``target``, ``HOST:PORT``."""

    def __init__(self, target: str) -> None:
        self._host, _, port = target.rpartition(":")
        self._port = int(port)
        self._sever = self.away = False
        self.address = ""
        self.refused = 0
        """Connections that were closed at once, while it was ``away``."""
        self.severed = 0
        """Connections that were broken off by ``sever``."""
        self._ends = set[asyncio.Task[None]]()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Relay]:
        """It listens at ``address`` meanwhile."""
        serving = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{serving.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            serving.close()
            await self._break_off()

    async def _break_off(self) -> None:
        ends = list(self._ends)
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)

    def sever(self) -> None:
        """Break the connection off by which the next bytes of a client come, which are lost."""
        self._sever = True

    async def leave(self) -> None:
        """Break all connections off, and take no others until it is not ``away`` any more."""
        self.away = True
        await self._break_off()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.away:
            self.refused += 1
            writer.close()
            return
        end = asyncio.ensure_future(self._serve(reader, writer))
        self._ends.add(end)
        end.add_done_callback(self._ends.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection; it is over as soon as one of its two ends is."""
        there, out = await asyncio.open_connection(self._host, self._port)
        ways = (
            asyncio.ensure_future(self._pass_on(reader, out, asked=True)),
            asyncio.ensure_future(self._pass_on(there, writer, asked=False)),
        )
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            out.close()
            writer.close()

    async def _pass_on(
        self, source: asyncio.StreamReader, to: asyncio.StreamWriter, *, asked: bool
    ) -> None:
        with suppress(ConnectionError):
            while data := await source.read(65_536):
                if asked and self._sever:
                    self._sever = False
                    self.severed += 1
                    return
                to.write(data)
                await to.drain()
