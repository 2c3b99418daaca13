"""The process that talks to one MCP server, which ``host`` starts: ``server_child SPEC CHANNEL
LIFELINE``.

Each frame asks for something by a number, as in ``child``: to ``describe`` the server, or one tool
of it, to ``call`` one, to ``read`` a resource, to ``cancel`` a call. A connection that is over ends
the process, and the server with it; the next call starts another.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
import sys
import threading
from typing import Any

from pydantic import ValidationError

from runtime.base.spec.servers import ServerSpec
from runtime.tools.calls import crossing
from runtime.tools.child import end, live_as_long_as
from runtime.tools.frames import Broken as BrokenFrame
from runtime.tools.frames import Channel
from runtime.tools.schemas import bounded_line
from runtime.tools.session import Broken, NotOffered, Session, connected, wrong_arguments
from runtime.tools.startable import missing

CONNECT_SECONDS = 60.0
MEMORY = 2 << 30
"""Bytes that this process may hold where a server's answers come over HTTP, unbounded."""
LAST_SECONDS = 10.0
"""How long calls in flight may take to tell that the connection is over."""
MOST_REASON = 300


def main() -> None:
    """Serve until the worker, or the connection, is gone."""
    # The package logs what a server says as it came, on the terminal of ``run``. Calls tell of it.
    logging.getLogger().addHandler(logging.NullHandler())
    spec = ServerSpec.model_validate_json(sys.argv[2])
    live_as_long_as(int(sys.argv[4]))
    connection = socket.socket(fileno=int(sys.argv[3]))
    connection.set_inheritable(False)
    if spec.url:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    asyncio.run(_Child(spec, Channel(connection)).serve())


class _Child:
    def __init__(self, spec: ServerSpec, channel: Channel) -> None:
        self._spec = spec
        self._channel = channel
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._session: asyncio.Future[Session]
        self._over = asyncio.Event()
        self._asked = asyncio.Event()

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        self._session = loop.create_future()
        threading.Thread(target=self._listen, args=(loop,), daemon=True).start()
        try:
            await self._hold()
        except BaseException as error:  # noqa: BLE001 whatever a server makes the client raise
            if not self._session.done():
                self._session.set_exception(NotOffered(self._why(error)))
                # Whoever had this process started asks, and is told why.
                await asyncio.wait_for(self._asked.wait(), CONNECT_SECONDS)
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=LAST_SECONDS)
        end()

    async def _hold(self) -> None:
        """Keep the connection until it is over."""
        if unset := missing(self._spec, os.environ):
            raise LookupError(f"the worker's environment has no {', '.join(unset)}")
        holding = connected(self._spec)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                # Never left: the process and its whole group end with the connection.
                session = await holding.__aenter__()
        except TimeoutError:
            raise TimeoutError(f"it did not answer for {CONNECT_SECONDS:g} seconds") from None
        self._session.set_result(session)
        await self._over.wait()

    def _why(self, error: BaseException) -> str:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        told = str(error) or type(error).__name__
        return f"the server {self._spec.name} cannot be reached: {crossing(told)}"

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            while (frame := self._channel.receive()) is not None:
                loop.call_soon_threadsafe(self._take, frame)
        except (BrokenFrame, RuntimeError, OSError):
            pass
        end()

    def _take(self, frame: dict[str, Any]) -> None:
        number = int(frame["id"])
        self._asked.set()
        match frame["do"]:
            case "describe":
                self._start(number, self._describe(str(frame["target"])))
            case "call":
                self._start(number, self._call(number, str(frame["target"]), frame["kwargs"]))
            case "read":
                self._start(number, self._read(number, str(frame["target"])))
            case "cancel" if number in self._tasks:
                self._tasks[number].cancel()

    def _start(self, number: int, answer: Any) -> None:
        async def run() -> None:
            try:
                frame = await answer
            except _Gone as error:
                frame = {"gone": str(error)}
            except NotOffered as error:
                frame = {"unavailable": crossing(str(error))}
            except Broken as error:
                frame = {"broken": f"the server {self._spec.name} {crossing(str(error))}"}
                if error.over:
                    self._over.set()
            except Exception as error:  # noqa: BLE001 whatever a server makes the client raise
                frame = {"broken": self._why(error)}
            try:
                self._channel.send({"id": number, **frame})
            except (OSError, ValueError, RecursionError):
                end()

        task = self._tasks[number] = asyncio.get_running_loop().create_task(run())
        task.add_done_callback(lambda _: self._tasks.pop(number, None))

    async def _describe(self, target: str) -> dict[str, Any]:
        """The listing of the server, or that a tool is still there."""
        # The connection is everybody's: a call that is cancelled must not cancel it.
        session = await asyncio.shield(self._session)
        if target:
            await self._offered(session, target)
            return {"spec": {}}
        try:
            listing = await session.listing()
        except NotOffered:
            raise
        except ValidationError as error:
            raise NotOffered(
                f"the server {self._spec.name} lists what are no tools: {_first_of(error)}"
            ) from None
        except Exception as error:
            self._over.set()
            raise NotOffered(self._why(error)) from error
        return {"listing": listing.model_dump(mode="json")}

    async def _call(self, number: int, target: str, arguments: dict[str, Any]) -> dict[str, Any]:
        session = await asyncio.shield(self._session)
        tool = await self._offered(session, target)
        if (wrong := wrong_arguments(tool, arguments)) is not None:
            return {"outcome": wrong.plain()}
        self._channel.send({"id": number, "begun": True, "blocks": True})
        return {"outcome": (await session.call(tool, arguments)).plain()}

    async def _read(self, number: int, uri: str) -> dict[str, Any]:
        try:
            session = await asyncio.shield(self._session)
        except NotOffered as error:
            raise _Gone(str(error)) from error
        if self._over.is_set():
            raise _Gone("the connection is over")
        self._channel.send({"id": number, "begun": True, "blocks": True})
        return {"resource": await session.read(uri)}

    async def _offered(self, session: Session, target: str) -> Any:
        """The tool; nothing has been called yet, so another process may be asked as well."""
        digest, _, name = target.partition(" ")
        try:
            if self._over.is_set():
                raise ConnectionError("the connection is over")
            return await session.offered(name, digest)
        except (NotOffered, asyncio.CancelledError):
            raise
        except Exception as error:
            self._over.set()
            raise _Gone(self._why(error)) from error


def _first_of(error: ValidationError) -> str:
    """Where the first thing stands that is wrong, and what it is."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return bounded_line(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", MOST_REASON)


class _Gone(Exception):
    """The connection is over, and nothing has been called."""
