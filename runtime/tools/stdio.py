"""The standard streams of an MCP server as a transport of the ``mcp`` package.

The package has one of its own, which starts servers in sessions of their own and takes messages of
any length. Here a server belongs to the group of this process, which ends with the worker, and what
it writes is bounded.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

MOST_BYTES = 8 << 20
"""Of one message. A longer line ends the server."""
MOST_DIGITS = 4_000
"""Of an integer; a longer one is the infinity that it is as a float."""
MOST_GARBAGE = 100
"""Lines that are no message: some servers greet. One more ends the server."""
MOST_ASKED = 100
"""Requests of a server's own whose answers it has not read. One more ends it."""
UNREAD = "Failed to parse"
"""How it is told, as the package begins to tell it over HTTP, that an answer is none."""
LOOK_SECONDS = 0.25
LAST_SECONDS = 1.0
"""Without a line from a program that has failed, before its connection is over."""
LOOKS = 8
"""How often it is looked whether a program ends that has closed its standard output."""

Incoming = SessionMessage | Exception


class Stdio:
    """A server that is started by a ``command``, and how it ``ended``."""

    def __init__(self, command: tuple[str, ...], directory: str) -> None:
        self._command, self._directory = command, directory
        self.ended = ""
        self._asked = self._lines = 0

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[tuple[Any, Any]]:
        """The streams of messages that the package's client wants."""
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=sys.stderr.fileno(),
            cwd=self._directory or None,
            limit=MOST_BYTES,
        )
        # No room between: a server that writes more than is read has to wait.
        to_client, from_server = anyio.create_memory_object_stream[Incoming](0)
        to_server, from_client = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as group:
            group.start_soon(self._read, process, to_client)
            group.start_soon(self._write, process, from_client)
            try:
                yield from_server, to_server
            finally:
                with suppress(ProcessLookupError):
                    process.kill()
                group.cancel_scope.cancel()

    async def _read(
        self, process: asyncio.subprocess.Process, to_client: MemoryObjectSendStream[Incoming]
    ) -> None:
        async with to_client, anyio.create_task_group() as group:
            group.start_soon(self._watch, process, group.cancel_scope)
            self.ended = await self._passed_on(process, to_client)
            group.cancel_scope.cancel()

    async def _watch(self, process: asyncio.subprocess.Process, reading: anyio.CancelScope) -> None:
        """End the reading soon after the program has failed: what it has started may hold its
        streams open for good. One that ended well may have handed them over.
        """
        # The process's own ``wait`` is for the streams too in some releases of Python.
        while process.returncode is None:  # noqa: ASYNC110 there is no event of it
            await asyncio.sleep(LOOK_SECONDS)
        if not process.returncode:
            return
        read = -1
        # What it wrote last is read before.
        while read != self._lines:
            read = self._lines
            await asyncio.sleep(LAST_SECONDS)
        self.ended = _how(process.returncode)
        reading.cancel()

    async def _passed_on(
        self, process: asyncio.subprocess.Process, to_client: MemoryObjectSendStream[Incoming]
    ) -> str:
        """Pass on what the program writes; how that ended."""
        assert process.stdout is not None
        garbage = 0
        while garbage <= MOST_GARBAGE:
            try:
                line = await process.stdout.readline()
            except ValueError:
                return f"wrote a message of more than {MOST_BYTES} bytes"
            if not line:
                return await _end_of(process)
            self._lines += 1
            message: JSONRPCMessage | None
            try:
                message = _message(line)
            except ValueError:
                garbage += 1
                message = _unread(line)
            except RecursionError:
                # It may be the answer that somebody waits for, and no other will come.
                return "wrote a message that is nested too deeply"
            if message is None:
                continue
            self._asked += isinstance(message, JSONRPCRequest)
            if self._asked > MOST_ASKED:
                return f"asked more than {MOST_ASKED} things and read no answer"
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                await to_client.send(SessionMessage(message))
        return f"wrote more than {MOST_GARBAGE} lines that are no messages"

    async def _write(
        self,
        process: asyncio.subprocess.Process,
        from_client: MemoryObjectReceiveStream[SessionMessage],
    ) -> None:
        assert process.stdin is not None
        with suppress(OSError):
            async with from_client:
                async for message in from_client:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    process.stdin.write(text.encode() + b"\n")
                    await process.stdin.drain()
                    self._asked -= isinstance(message.message, JSONRPCResponse | JSONRPCError)


def _message(line: bytes) -> JSONRPCMessage:
    """What a line says.

    Raises:
        ValueError: if it is no message.
        RecursionError: if it is nested too deeply.
    """
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        # JSON all the same, with what the adapter does not read: halves of characters, as of a text
        # that was cut within one, long numbers, deep nesting.
        read = line.decode(json.detect_encoding(line), "replace")
        text = json.dumps(json.loads(read, parse_int=_number), ensure_ascii=False)
        whole = json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
        message = jsonrpc_message_adapter.validate_python(whole, by_name=False)
    try:
        # The session writes it anew, which pydantic does to some depth; Python reads more.
        message.model_dump(mode="json")
    except ValueError as error:
        raise RecursionError from error
    return message


def _unread(line: bytes) -> JSONRPCError | None:
    """An error in the place of an answer that is none: whoever waits for that waits in vain. None
    for what is no answer at all.
    """
    with suppress(ValueError, RecursionError):
        match json.loads(line):
            case {"id": asked, "result": _} | {"id": asked, "error": _}:
                error = ErrorData(code=INTERNAL_ERROR, message=UNREAD)
                return JSONRPCError(jsonrpc="2.0", id=asked, error=error)
    return None


async def _end_of(process: asyncio.subprocess.Process) -> str:
    """How a program ended that has closed its standard output, or that it goes on without."""
    for _ in range(LOOKS):
        if process.returncode is not None:
            return _how(process.returncode)
        await asyncio.sleep(LOOK_SECONDS)
    return "closed its standard output"


def _number(digits: str) -> int | float:
    """A number, also one of more digits than Python reads as an integer."""
    return int(digits) if len(digits) <= MOST_DIGITS else float(digits)


def _how(code: int) -> str:
    return f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}"
