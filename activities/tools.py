"""Calling a job's tools: what came of a call is archived, and what is archived is not called
again.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities._recorded_effects import NOT_RECORDED, recorded_value
from activities.contracts import ToolRequest, ToolResult
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore
from runtime.base.failpoints import failpoint
from runtime.redaction.redactor import redactor_of
from runtime.tools.host import HostEnded, ToolHost, ToolHosts

R = TypeVar("R")
HEARTBEAT_SECONDS = 1.0
MAX_THREADS = 64


class ToolActivities:
    """The activity ``call_tool``.

    A result is archived before it is returned, so a retry finds it and the tool does not run again.
    A kill between the end of the tool and that write is the one moment after which a tool runs
    twice: tools with side effects in the world should be idempotent. Tools run in processes of
    their own (``runtime.tools.host``).
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._hosts = ToolHosts()
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="holdfast-tool")

    @activity.defn(name="call_tool")
    async def call_tool(self, request: ToolRequest) -> ToolResult:
        """The tool's result, or the exception it raised for the statement.

        Raises:
            ApplicationError: type ``ToolUnavailable``, when the tool cannot be imported by this
                worker.
            ArchiveError: the archive cannot be read or written.
        """
        archive = JobArchive.of(self._store, request.key)
        address = activity.info().workflow_run_id or "", request.turn, request.effect
        if request.recorded is not None:
            found = await self._in_thread(
                recorded_value, self._store, request.recorded, archive, address
            )
            # The result of a tool that returned nothing is empty, and a result all the same.
            if found is None:
                return ToolResult(error_type="RuntimeError", error_message=NOT_RECORDED)
            return ToolResult.model_validate(found)
        recorded = await self._in_thread(archive.effect, *address)
        if recorded is None:
            result = await self._in_thread(_masked, await self._run(request), request)
            failpoint("tool.after_run")
            await self._in_thread(archive.write_effect, *address, result.model_dump(mode="json"))
            # Another attempt may have been first; what the archive holds is what happened.
            recorded = await self._in_thread(archive.effect, *address)
        failpoint("tool.before_return")
        return ToolResult.model_validate(recorded)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """For as long as the worker works: at the end no process of a tool is left."""
        try:
            yield
        finally:
            await asyncio.to_thread(self._hosts.close)
            self._threads.shutdown(wait=False)

    async def _run(self, request: ToolRequest) -> ToolResult:
        """One call.

        A process that ended before the call began, by another call's fault, is none of its own.
        """
        for last in (False, True):
            host = await self._in_thread(self._hosts.of, request.search_path)
            failpoint("tool.before_run")
            try:
                return await self._answered(host, request)
            except HostEnded as error:
                if error.begun:
                    # What it has done by then nobody knows: it is not made again.
                    return ToolResult(
                        error_type="RuntimeError", error_message=f"the process of the tool {error}"
                    )
                if last:
                    told = f"{request.tool}: its process {error} before the call began"
                    raise ApplicationError(told, type="ToolUnavailable") from error
        raise AssertionError("a second try returns or raises")

    async def _answered(self, host: ToolHost, request: ToolRequest) -> ToolResult:
        """The call's outcome, with a heartbeat a second until it comes."""
        try:
            asked = await self._in_thread(host.call, request.tool, request.args, request.kwargs)
        except ValueError as error:
            return ToolResult(error_type="ValueError", error_message=f"{request.tool}: {error}")
        answer = asyncio.wrap_future(asked.answer)
        try:
            while not answer.done():
                activity.heartbeat()
                await asyncio.wait({answer}, timeout=HEARTBEAT_SECONDS)
        except asyncio.CancelledError:
            host.give_up(asked)
            raise
        frame = answer.result()
        if "unavailable" in frame:
            raise ApplicationError(
                f"{request.tool}: {frame['unavailable']}", type="ToolUnavailable"
            )
        return ToolResult.model_validate(frame["outcome"])

    async def _in_thread(self, function: Callable[..., R], *args: Any) -> R:
        """``function(*args)`` in a thread that sees this activity's context."""
        call = functools.partial(contextvars.copy_context().run, function, *args)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)


def _masked(result: ToolResult, request: ToolRequest) -> ToolResult:
    """The result without secrets, before anybody keeps or sees it."""
    redactor = redactor_of(request.redact)
    message = redactor.text(result.error_message)
    return result.model_copy(
        update={"value": redactor.value(result.value), "error_message": message}
    )
