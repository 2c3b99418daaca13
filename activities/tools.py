"""Calling a job's tools: checked arguments, a bounded JSON result, and no second run of what is archived."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_jsonable_python
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities._recorded_effects import NOT_RECORDED, recorded_value
from activities.contracts import ToolRequest, ToolResult
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore
from runtime.errors import InputError
from runtime.failpoints import failpoint
from runtime.redaction.redactor import redactor_of
from runtime.tool_results import wrong_result
from runtime.tools import Arguments, Tool, open_tool

R = TypeVar("R")
MAX_RESULT_BYTES = 512 * 1024
MAX_MESSAGE = 4_000
HEARTBEAT_SECONDS = 1.0
MAX_THREADS = 64
RAISABLE = frozenset(
    {
        *("ArithmeticError", "AssertionError", "AttributeError", "Exception", "FileExistsError", "FileNotFoundError"),
        *("ImportError", "IndexError", "IsADirectoryError", "KeyError", "LookupError", "MemoryError", "NameError"),
        *("ModuleNotFoundError", "NotADirectoryError", "NotImplementedError", "OSError", "OverflowError"),
        *("PermissionError", "RecursionError", "RuntimeError", "TimeoutError", "TypeError", "ValueError"),
        "ZeroDivisionError",
    }
)
"""Built-in exceptions that the interpreter knows and that a message alone makes."""


class ToolActivities:
    """The activity ``call_tool``.

    A result is archived before it is returned, so a retry finds it and the tool does not run again. A kill between
    the end of the tool and that write is the one moment after which a tool runs twice: tools with side effects in
    the world should be idempotent. A synchronous tool runs in a thread, which a cancellation leaves to finish alone.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="holdfast-tool")

    @activity.defn(name="call_tool")
    async def call_tool(self, request: ToolRequest) -> ToolResult:
        """The tool's result, or the exception it raised for the statement.

        Raises:
            ApplicationError: type ``ToolUnavailable``, when the tool cannot be imported by this worker.
            ArchiveError: the archive cannot be read or written.
        """
        archive = JobArchive.of(self._store, request.key)
        address = activity.info().workflow_run_id or "", request.turn, request.effect
        if request.recorded is not None:
            found = await self._in_thread(recorded_value, self._store, request.recorded, archive, address)
            # The result of a tool that returned nothing is empty, and a result all the same.
            if found is None:
                return ToolResult(error_type="RuntimeError", error_message=NOT_RECORDED)
            return ToolResult.model_validate(found)
        recorded = await self._in_thread(archive.effect, *address)
        if recorded is None:
            tool = await self._in_thread(_open, request)
            failpoint("tool.before_run")
            result = await self._in_thread(_masked, await self._run(tool, request), request)
            failpoint("tool.after_run")
            await self._in_thread(archive.write_effect, *address, result.model_dump(mode="json"))
            # Another attempt may have been first; what the archive holds is what happened.
            recorded = await self._in_thread(archive.effect, *address)
        failpoint("tool.before_return")
        return ToolResult.model_validate(recorded)

    async def _run(self, tool: Tool, request: ToolRequest) -> ToolResult:
        """One call, with a heartbeat a second while it lasts."""
        call = _outcome_async(tool, request) if tool.spec.is_async else self._in_thread(_outcome, tool, request)
        running = asyncio.ensure_future(call)
        try:
            while not running.done():
                activity.heartbeat()
                await asyncio.wait({running}, timeout=HEARTBEAT_SECONDS)
        except asyncio.CancelledError:
            running.cancel()
            raise
        if running.cancelled():
            return ToolResult(error_type="RuntimeError", error_message="CancelledError: the tool gave up")
        return running.result()

    async def _in_thread(self, function: Callable[..., R], *args: Any) -> R:
        """``function(*args)`` in a thread that sees this activity's context."""
        call = functools.partial(contextvars.copy_context().run, function, *args)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)


def _masked(result: ToolResult, request: ToolRequest) -> ToolResult:
    """The result without secrets, before anybody keeps or sees it."""
    redactor = redactor_of(request.redact)
    message = redactor.text(result.error_message)
    return result.model_copy(update={"value": redactor.value(result.value), "error_message": message})


def _open(request: ToolRequest) -> Tool:
    try:
        return open_tool(request.tool, request.search_path)
    except InputError as error:
        raise ApplicationError(f"{request.tool}: {error}", type="ToolUnavailable") from error


def _outcome(tool: Tool, request: ToolRequest) -> ToolResult:
    """A synchronous tool's call. Whatever it raises is a result: a retry would run the tool again."""
    bound = _bind(tool, request)
    if isinstance(bound, ToolResult):
        return bound
    try:
        return _as_result(tool, tool.function(*bound.args, **bound.kwargs))
    except (Exception, SystemExit) as error:  # noqa: BLE001 the tool's exception is the statement's
        return _failure(error)


async def _outcome_async(tool: Tool, request: ToolRequest) -> ToolResult:
    """A coroutine tool's call, as ``_outcome``."""
    bound = _bind(tool, request)
    if isinstance(bound, ToolResult):
        return bound
    try:
        return _as_result(tool, await tool.function(*bound.args, **bound.kwargs))
    except (Exception, SystemExit) as error:  # noqa: BLE001 the tool's exception is the statement's
        return _failure(error)


def _bind(tool: Tool, request: ToolRequest) -> Arguments | ToolResult:
    """The coerced arguments, or what is wrong with them."""
    try:
        return tool.bind(*request.args, **request.kwargs)
    except ValidationError as error:
        return _bad_arguments(tool, error)
    except Exception as error:  # noqa: BLE001 a validator of the tool's own types may raise anything
        return _failure(error)


def _as_result(tool: Tool, value: Any) -> ToolResult:
    """``value`` as JSON, or an error that says why it is none, is of another type than declared, or too long."""
    kind, name = type(value).__name__, tool.spec.name
    try:
        plain = to_jsonable_python(value)
        encoded = json.dumps(plain, ensure_ascii=False, allow_nan=False).encode()
        # What the workflow could not decode must not reach it: its task would fail for ever.
        decoded = from_json(encoded, allow_inf_nan=False)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        return ToolResult(error_type="TypeError", error_message=f"{name}() returned a {kind} that is no JSON: {error}")
    if (problem := wrong_result(name, tool.returns, decoded)) is not None:
        return ToolResult(error_type="TypeError", error_message=_bounded(problem))
    if len(encoded) > MAX_RESULT_BYTES:
        told = f"{name}() returned {len(encoded)} bytes of JSON; at most {MAX_RESULT_BYTES} fit: ask for less"
        return ToolResult(error_type="ValueError", error_message=told)
    return ToolResult(value=plain)


def _bad_arguments(tool: Tool, error: ValidationError) -> ToolResult:
    """The first three things wrong with a call's arguments."""
    told = []
    for detail in error.errors(include_url=False, include_context=False)[:3]:
        first, *rest = detail["loc"] or ("arguments",)
        where = f"argument {first + 1}" if isinstance(first, int) else str(first)
        told.append(f"{'.'.join([where, *map(str, rest)])}: {detail['msg']}")
    return ToolResult(error_type="TypeError", error_message=_bounded(f"{tool.spec.name}(): {'; '.join(told)}"))


def _failure(error: BaseException) -> ToolResult:
    """An exception as the interpreter can raise it: by its own name if it knows that, else as a RuntimeError."""
    kind = type(error)
    try:
        # str() of a KeyError is the repr of its key; raising it anew would quote that again.
        quoted = isinstance(error, KeyError) and len(error.args) == 1 and isinstance(error.args[0], str)
        message = error.args[0] if quoted else str(error)
    except Exception:  # noqa: BLE001 a broken __str__ must not make the tool run again
        message = "(its message cannot be read)"
    if kind.__module__ == "builtins" and kind.__name__ in RAISABLE:
        return ToolResult(error_type=kind.__name__, error_message=_bounded(message))
    return ToolResult(error_type="RuntimeError", error_message=_bounded(f"{kind.__name__}: {message}"))


def _bounded(message: str) -> str:
    """``message`` as Unicode text of at most ``MAX_MESSAGE`` characters."""
    text = message.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + "..."
