"""Calling a job's tools: what came of a call is archived, and what is archived is not called
again.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import itertools
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities._listings import LISTINGS, recorded_listings
from activities._once import CallClaim, held_claim, in_archive
from activities._recorded_effects import NOT_RECORDED, recorded_value
from activities.approvals import keep_decision, rejected
from activities.bounds import not_allowed
from activities.contracts import ServersListed, ServersQuestion, ToolRequest, ToolResult
from activities.heartbeats import HEARTBEAT_SECONDS
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore
from runtime.base.effect_classes import EffectClass
from runtime.base.failpoints import failpoint
from runtime.base.redaction.redactor import Redactor, redactor_of
from runtime.base.spec.servers import ServerListing, ServerSpec, with_tokens
from runtime.tools.calls import shortened
from runtime.tools.environment import named_secrets
from runtime.tools.host import Asked, HostEnded, ToolHost, ToolHosts

R = TypeVar("R")
MAX_THREADS = 64
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 60.0
"""Seconds between two tries of a call: each time twice as many."""
TRIES_TO_BEGIN = 2
TRIES_TO_LIST = 3
MOST_REASON = 500
CONNECT_SECONDS = 90.0
"""Until a server that says nothing counts as one that cannot be reached."""


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
    def answer(self) -> ToolResult:
        """What the statement gets."""
        return self.result or ToolResult(error_type=self.kind, error_message=self.ended)


class ToolActivities:
    """The activity ``call_tool``.

    A result is archived before it is returned, so a retry finds it and the tool does not run again.
    A kill between the begin of a call and that write is the one moment after which a tool runs
    twice; one of the class ``once`` does not (``_once``). Tools run in processes of their own
    (``runtime.tools.host``).
    """

    def __init__(self, store: ObjectStore, allowed: Sequence[Path] = ()) -> None:
        self._store = store
        self.hosts = self._hosts = ToolHosts(allowed)
        self._missing: dict[str, str] = {}
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="holdfast-tool")

    @activity.defn(name="call_tool")
    async def call_tool(self, request: ToolRequest) -> ToolResult:
        """The tool's result, or the exception it raised for the statement.

        Raises:
            ApplicationError: type ``ToolUnavailable``, when the tool cannot be imported by this
                worker; ``NotAllowed``, when it may not be.
            ArchiveError: the archive cannot be read or written.
        """
        archive = JobArchive.of(self._store, request.key)
        address = activity.info().workflow_run_id or "", request.turn, request.effect
        if request.recorded is not None:
            value = await self._in_thread(
                recorded_value, self._store, request.recorded, archive, address
            )
            # The result of a tool that returned nothing is empty, and a result all the same.
            if value is None:
                return ToolResult(error_type="RuntimeError", error_message=NOT_RECORDED)
            return ToolResult.model_validate(value)
        archived = await self._in_thread(archive.effect, *address)
        if archived is None:
            result = await self._in_thread(_masked, await self._allowed(request, archive), request)
            failpoint("tool.after_run")
            value = result.model_dump(mode="json")
            await in_archive(
                request, lambda: self._in_thread(archive.write_effect, *address, value)
            )
            # Another attempt may have been first; what the archive holds is what happened.
            archived = await self._in_thread(archive.effect, *address)
        failpoint("tool.before_return")
        return ToolResult.model_validate(archived)

    @activity.defn(name="list_servers")
    async def list_servers(self, question: ServersQuestion) -> ServersListed:
        """What a job's MCP servers offer, archived as its first turn begins.

        One that cannot be asked offers nothing: its job goes on without it.

        Raises:
            ArchiveError: the archive cannot be read or written.
        """
        archive = JobArchive.of(self._store, question.key)
        address = activity.info().workflow_run_id or "", 1, LISTINGS
        listed = await self._in_thread(archive.effect, *address)
        if listed is None and (record := question.recorded) is not None:
            listed = await self._in_thread(recorded_listings, self._store, record.source)
            if listed is not None and record.kept:
                listed = await self._in_thread(archive.write_effect, *address, listed)
        if asked := listed is None:
            redactor = redactor_of(with_tokens(question.redact, question.servers))
            listings = await asyncio.gather(
                *(self._listing(server, redactor) for server in question.servers)
            )
            value = ServersListed(listings=tuple(listings)).model_dump(mode="json")
            listed = await self._in_thread(archive.write_effect, *address, redactor.value(value))
        told = ServersListed.model_validate(listed)
        if asked:
            self._tell_missing(question, told)
        return told

    def _tell_missing(self, question: ServersQuestion, listed: ServersListed) -> None:
        """Warn of servers that offer nothing, or what are no tools: of each once, and not for all
        jobs of a batch.
        """
        for listing in listed.listings:
            why = listing.error or listing.wrong
            if why and self._missing.get(listing.name) != why:
                self._missing[listing.name] = why
                if listing.wrong:
                    why = f"the server {listing.name} lists what are no tools: {why}"
                some = "some tools" if listing.wrong else "a server's tools"
                activity.logger.warning("%s goes on without %s: %s", question.key, some, why)

    async def _listing(self, server: ServerSpec, redactor: Redactor) -> ServerListing:
        """What a server offers, after some tries."""
        frame: dict[str, Any] = {}
        for tries in range(TRIES_TO_LIST):
            if tries:
                await self._pause(2.0 * FIRST_PAUSE * 2**tries)
            frame = await self._asked_for(server, "")
            if "listing" in frame:
                return ServerListing.model_validate(frame["listing"])
        why = frame.get("unavailable", frame.get("gone", frame.get("broken", "")))
        # Before it is cut: half a secret is found by no search.
        told = shortened(redactor.text(str(why)))[:MOST_REASON]
        return ServerListing(name=server.name, error=told)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """For as long as the worker works: at the end no process of a tool is left."""
        try:
            yield
        finally:
            await asyncio.to_thread(self._hosts.close)
            self._threads.shutdown(wait=False)

    async def _allowed(self, request: ToolRequest, archive: JobArchive) -> ToolResult:
        """What comes of a call, if nobody has rejected it."""
        if (decision := request.decision) is not None:
            run = activity.info().workflow_run_id or ""
            await self._in_thread(keep_decision, archive, run, request, decision)
            if not decision.approved:
                name = request.called.rpartition(":")[2]
                return ToolResult(**rejected(name, decision))
        return await self._made(request, archive)

    async def _made(self, request: ToolRequest, archive: JobArchive) -> ToolResult:
        """What comes of a call that has no result yet."""
        try:
            named_secrets(request.secrets, os.environ)
        except ValueError as error:
            # Another worker may have it, or this one when it is started anew.
            raise ApplicationError(f"{request.called}: {error}", type="ToolUnavailable") from error
        if request.often is EffectClass.ONCE:
            return await self._made_once(request, archive)
        for retry in itertools.count():
            told = await self._tried(request)
            # What a tool raised is tried again too, as often as its author allows.
            if told.result is not None and told.result.error_type is None:
                return told.result
            if not told.begun or retry == request.retries:
                return told.answer
            await self._pause(min(FIRST_PAUSE * 2**retry, LONGEST_PAUSE))
        raise AssertionError("a last try returns")

    async def _made_once(self, request: ToolRequest, archive: JobArchive) -> ToolResult:
        """A call that nobody has claimed. What it raised is told; that it ended otherwise is
        told as an unknown outcome.
        """
        # A tool that is not there has not run: no claim may say otherwise.
        if (missing := await self._described(request)) is not None:
            return missing.answer
        address = activity.info().workflow_run_id or "", request.turn, request.effect
        # Written before the call: a crash in between leaves a call that was not made, never one
        # made twice.
        claim = CallClaim(archive, address, request)
        taken = held_claim(request).archived(lambda: self._in_thread(claim.taken))
        if (unknown := await taken) is not None:
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

    async def _described(self, request: ToolRequest) -> Told | None:
        """None if the tool is there.

        Raises:
            ApplicationError: type ``ToolUnavailable``, if it is not.
        """
        frame: dict[str, Any] = {}
        # Once more: a process may have ended by another call's fault.
        for _ in range(TRIES_TO_BEGIN):
            frame = await self._asked_for(
                request.server or request.search_path, request.target, request.secrets
            )
            if "gone" not in frame:
                break
        return _unavailable(request, frame)

    async def _asked_for(
        self, tools: str | ServerSpec, target: str, secrets: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """What the process of some tools says of one of them, or of all."""
        host = await self._in_thread(self._hosts.of, tools, secrets)
        asked = await self._in_thread(host.describe, target)
        limit = None if isinstance(tools, str) else CONNECT_SECONDS
        try:
            frame = await self._answer(asked, None, limit)
        except asyncio.CancelledError:
            host.give_up(asked)
            raise
        except HostEnded as error:
            return {"gone": f"its process {error} before the call"}
        except TimeoutError:
            # As a server is that answers one call at a time, and has a long one of another job.
            host.give_up(asked)
            return {"unavailable": f"no answer came for {CONNECT_SECONDS:g} seconds"}
        if "gone" in frame:
            host.retire()
        return frame

    async def _tried(self, request: ToolRequest) -> Told:
        """One call.

        A process that ended before the call began, by another call's fault, is none of its own.
        """
        # One of the class once has claimed its call by now: another attempt would find the claim,
        # and not call.
        again = request.often is not EffectClass.ONCE and request.server is None
        for _ in range(TRIES_TO_BEGIN):
            async with self._host(request) as host:
                failpoint("tool.before_run")
                try:
                    return await self._answered(host, request)
                except HostEnded as error:
                    what = "tool" if request.server is None else f"server {request.server.name}"
                    ended = f"the process of the {what} {error}"
                    if error.begun:
                        # What it has done by then nobody knows.
                        return Told(ended=ended)
                    told = f"{request.called}: its process {error} before the call began"
        if again:
            raise ApplicationError(told, type="ToolUnavailable")
        return Told(ended=ended, begun=False)

    @asynccontextmanager
    async def _host(self, request: ToolRequest) -> AsyncIterator[ToolHost]:
        """The process for a call: one for it alone if it may be ended in its midst."""
        place = request.search_path, request.secrets
        if request.server is not None:
            yield await self._in_thread(self._hosts.of, request.server)
            return
        if request.timeout is None:
            yield await self._in_thread(self._hosts.of, *place)
            return
        host = await self._in_thread(self._hosts.lent, *place)
        try:
            yield host
        finally:
            # Also when the call is cancelled: a process that nobody gave back would be lost to the
            # others.
            await asyncio.shield(self._in_thread(self._hosts.give_back, host, *place))

    async def _answered(self, host: ToolHost, request: ToolRequest) -> Told:
        """The call's outcome."""
        try:
            asked = await self._in_thread(host.call, request.target, request.args, request.kwargs)
        except ValueError as error:
            result = ToolResult(error_type="ValueError", error_message=f"{request.called}: {error}")
            return Told(result, begun=False)
        limit = None if request.server is None else CONNECT_SECONDS
        try:
            frame = await self._answer(asked, request.timeout, limit)
        except asyncio.CancelledError:
            host.give_up(asked)
            raise
        except TimeoutError:
            if request.server is not None:
                # Others may still be answered: it takes no new calls, and ends with the last.
                host.give_up(asked)
                seconds = request.timeout if asked.begun else CONNECT_SECONDS
                ended = f"{request.called} did not answer within {seconds:g} seconds"
                return Told(ended=ended, kind="TimeoutError", begun=asked.begun)
            await self._in_thread(host.close)
            ended = f"it took more than its {request.timeout:g} seconds, and its process was ended"
            return Told(ended=ended, kind="TimeoutError", begun=asked.begun)
        if "gone" in frame:
            host.retire()
            raise HostEnded(f"could not go on: {frame['gone']},", begun=False)
        if (missing := _unavailable(request, frame)) is not None:
            return missing
        if "broken" in frame:
            return Told(ended=str(frame["broken"]), begun=asked.begun)
        return Told(ToolResult.model_validate(frame["outcome"]), begun=asked.begun)

    async def _answer(
        self, asked: Asked, seconds: float | None, before: float | None
    ) -> dict[str, Any]:
        """The frame that answers, with a heartbeat a second until it comes.

        Raises:
            TimeoutError: if the call has run for so many ``seconds``, or has not begun for as many
                as ``before``: what a module imports is not the call's time.
        """
        answer = asyncio.wrap_future(asked.answer)
        # Of a call that is cancelled nobody else hears how its process ended.
        answer.add_done_callback(lambda one: one.cancelled() or one.exception())
        asked_at = time.monotonic()
        longest = HEARTBEAT_SECONDS if seconds is None else min(seconds, HEARTBEAT_SECONDS)
        while not answer.done():
            activity.heartbeat()
            limit, since = (
                (before, asked_at) if asked.begun_at is None else (seconds, asked.begun_at)
            )
            if limit is not None and time.monotonic() - since >= limit:
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


def _unavailable(request: ToolRequest, frame: dict[str, Any]) -> Told | None:
    """What comes of a call of a tool that is not there; None if it is.

    Another worker may have the function; a server's tool is gone for all of them.
    """
    if "refused" in frame:
        raise not_allowed(str(frame["refused"]))
    why = frame.get("unavailable", frame.get("gone"))
    if why is None:
        return None
    if request.server is None:
        raise ApplicationError(f"{request.tool}: {why}", type="ToolUnavailable")
    return Told(ended=str(why), begun=False)


def _masked(result: ToolResult, request: ToolRequest) -> ToolResult:
    """The result without secrets, before anybody keeps or sees it."""
    servers = () if request.server is None else (request.server,)
    redactor = redactor_of(with_tokens(request.redact, servers))
    message = shortened(redactor.text(result.error_message))
    return result.model_copy(
        update={"value": redactor.value(result.value), "error_message": message}
    )
