"""Calling a job's tools: what came of a call is archived, and what is archived is not called
again.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import itertools
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities._once import CallClaim
from activities._recorded_effects import NOT_RECORDED, recorded_value
from activities.contracts import ToolRequest, ToolResult
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore
from runtime.base.effect_classes import EffectClass
from runtime.base.failpoints import failpoint
from runtime.redaction.redactor import redactor_of
from runtime.tools.host import Asked, HostEnded, ToolHost, ToolHosts

R = TypeVar("R")
HEARTBEAT_SECONDS = 1.0
MAX_THREADS = 64
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 60.0
"""Seconds between two tries of a call: each time twice as many."""
TRIES_TO_BEGIN = 2


@dataclass(frozen=True)
class Told:
    """What came of one try of a call: a result, or how it ended without one.

    ``begun``: the tool may have run.
    """

    result: ToolResult | None = None
    ended: str = ""
    kind: str = "RuntimeError"
    begun: bool = True

    @property
    def given(self) -> ToolResult:
        """What the statement gets."""
        return self.result or ToolResult(error_type=self.kind, error_message=self.ended)


class ToolActivities:
    """The activity ``call_tool``.

    A result is archived before it is returned, so a retry finds it and the tool does not run again.
    A kill between the begin of a call and that write is the one moment after which a tool runs
    twice; one of the class ``once`` does not (``_once``). Tools run in processes of their own
    (``runtime.tools.host``).
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
            result = await self._in_thread(_masked, await self._made(request, archive), request)
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

    async def _made(self, request: ToolRequest, archive: JobArchive) -> ToolResult:
        """What comes of a call that has no result yet."""
        if request.often is EffectClass.ONCE:
            return await self._made_once(request, archive)
        for retry in itertools.count():
            told = await self._tried(request)
            if told.result is not None and told.result.error_type is None:
                return told.result
            if not told.begun or retry == request.retries:
                return told.given
            await self._pause(min(FIRST_PAUSE * 2**retry, LONGEST_PAUSE))
        raise AssertionError("a last try returns")

    async def _made_once(self, request: ToolRequest, archive: JobArchive) -> ToolResult:
        """A call that nobody has claimed. What it raised is told; that it ended otherwise is
        told as an unknown outcome.
        """
        # A tool that is not there has not run: no claim may say otherwise.
        await self._described(request)
        address = activity.info().workflow_run_id or "", request.turn, request.effect
        claim = CallClaim(archive, address, request)
        if (unknown := await self._in_thread(claim.taken)) is not None:
            return unknown
        failpoint("tool.after_claim")
        told = await self._tried(request)
        if told.result is not None:
            return told.result
        if told.begun:
            return await self._in_thread(claim.broken, told.ended)
        return ToolResult(
            error_type="RuntimeError",
            error_message=f"{request.tool}: {told.ended} before the call began; it was not made",
        )

    async def _described(self, request: ToolRequest) -> None:
        """See that the tool is there.

        Raises:
            ApplicationError: type ``ToolUnavailable``, if it is not.
        """
        async with self._host(request) as host:
            asked = await self._in_thread(host.describe, request.tool)
            try:
                frame = await self._answer(asked)
            except HostEnded as error:
                told = f"{request.tool}: its process {error} as it was imported"
                raise ApplicationError(told, type="ToolUnavailable") from error
        _check_available(request, frame)

    async def _tried(self, request: ToolRequest) -> Told:
        """One call.

        A process that ended before the call began, by another call's fault, is none of its own.
        """
        once = request.often is EffectClass.ONCE
        for _ in range(TRIES_TO_BEGIN):
            async with self._host(request) as host:
                failpoint("tool.before_run")
                try:
                    return await self._answered(host, request)
                except HostEnded as error:
                    ended = f"the process of the tool {error}"
                    if error.begun:
                        # What it has done by then nobody knows.
                        return Told(ended=ended)
                    told = f"{request.tool}: its process {error} before the call began"
        if not once:
            raise ApplicationError(told, type="ToolUnavailable")
        return Told(ended=ended, begun=False)

    @asynccontextmanager
    async def _host(self, request: ToolRequest) -> AsyncIterator[ToolHost]:
        """The process for a call: one for it alone if it may be ended in its midst."""
        if request.timeout is None:
            yield await self._in_thread(self._hosts.of, request.search_path)
            return
        host = await self._in_thread(self._hosts.lent, request.search_path)
        try:
            yield host
        finally:
            await asyncio.shield(self._in_thread(self._hosts.give_back, request.search_path, host))

    async def _answered(self, host: ToolHost, request: ToolRequest) -> Told:
        """The call's outcome."""
        try:
            asked = await self._in_thread(host.call, request.tool, request.args, request.kwargs)
        except ValueError as error:
            result = ToolResult(error_type="ValueError", error_message=f"{request.tool}: {error}")
            return Told(result, begun=False)
        try:
            frame = await self._answer(asked, request.timeout)
        except asyncio.CancelledError:
            host.give_up(asked)
            raise
        except TimeoutError:
            await self._in_thread(host.close)
            ended = f"it took more than its {request.timeout:g} seconds, and its process was ended"
            return Told(ended=ended, kind="TimeoutError")
        _check_available(request, frame)
        return Told(ToolResult.model_validate(frame["outcome"]), begun=asked.begun)

    async def _answer(self, asked: Asked, seconds: float | None = None) -> dict[str, Any]:
        """The frame that answers, with a heartbeat a second until it comes.

        Raises:
            TimeoutError: if the call has run for so many ``seconds``.
        """
        answer = asyncio.wrap_future(asked.answer)
        longest = HEARTBEAT_SECONDS if seconds is None else min(seconds, HEARTBEAT_SECONDS)
        while not answer.done():
            activity.heartbeat()
            # Counted from its begin: what a module imports is not the call's time.
            ran = 0.0 if asked.begun_at is None else time.monotonic() - asked.begun_at
            if seconds is not None and ran >= seconds:
                answer.cancel()
                raise TimeoutError
            await asyncio.wait({answer}, timeout=longest)
        return answer.result()

    async def _pause(self, seconds: float) -> None:
        """Wait before a further try."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            activity.heartbeat()
            await asyncio.sleep(min(left, HEARTBEAT_SECONDS))

    async def _in_thread(self, function: Callable[..., R], *args: Any) -> R:
        """``function(*args)`` in a thread that sees this activity's context."""
        call = functools.partial(contextvars.copy_context().run, function, *args)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)


def _check_available(request: ToolRequest, frame: dict[str, Any]) -> None:
    if "unavailable" in frame:
        raise ApplicationError(f"{request.tool}: {frame['unavailable']}", type="ToolUnavailable")


def _masked(result: ToolResult, request: ToolRequest) -> ToolResult:
    """The result without secrets, before anybody keeps or sees it."""
    redactor = redactor_of(request.redact)
    message = redactor.text(result.error_message)
    return result.model_copy(
        update={"value": redactor.value(result.value), "error_message": message}
    )
