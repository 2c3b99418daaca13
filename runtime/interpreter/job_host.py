"""The program around a job's statements: context calls, tools, the workspace's files, the clock,
and ``finish``.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from pydantic_monty import MontyFileHandle

from runtime.base import os_values
from runtime.base.characters import as_literal
from runtime.base.digests import canonical_json
from runtime.base.redaction.computed import without_keys
from runtime.base.result_schemas import before_bounds
from runtime.base.result_schemas.faults import result_problem
from runtime.base.spec.servers import ServerListing
from runtime.base.values import Value
from runtime.context import api
from runtime.context.graph import ContextGraph
from runtime.context.outcomes import (
    NeedsRead,
    NodeRef,
    Outcome,
    Raised,
    Refused,
    Returned,
)
from runtime.context.sources import ALL_TOKENS, ReadResult
from runtime.interpreter import hands
from runtime.interpreter.dialect import Dialect
from runtime.interpreter.host import (
    Answer,
    Effect,
    EffectKind,
    Failure,
    HostAnswer,
    NotHandled,
    ReturnValue,
)
from runtime.interpreter.lowering import SERVER_CALL
from runtime.interpreter.plain_data import NoData, plain
from runtime.interpreter.spawning import Lend, wish_of
from runtime.interpreter.supplied import before_bounds as computed_before
from runtime.interpreter.supplied import pure

CONTEXT_FUNCTIONS = frozenset(signature.name for signature in api.FUNCTIONS)
_CLOCK = frozenset({"datetime.now", "date.today", "time.time"})
_READS = frozenset({"Path.read_text", "Path.read_bytes"})

MAX_EFFECTS = 1_000
"""File reads and tool calls of one statement: each is a handful of events in the workflow's
history.
"""

MAX_NODES = 1_000
"""Views, groups and notes of one statement."""

MAX_JOB_NODES = 2_000
"""Views, groups and notes of a job: of this many, all of them new, a tick and a projection take 0.5
s of processor time.
"""

_MAKES = frozenset({"view", "group", "note", "spawn"})

MAX_REQUEST_BYTES = 512 * 1024
"""JSON of one effect's question or of ``finish``'s result.

Temporal refuses 2 MiB, and the job would hang.
"""

MAX_TEXT = 4_000
"""Characters of a text given to a node or to one of the contract's functions."""

_WRITES = frozenset(
    {
        "note",
        *(spelling for name in ("SetText", "Append") for spelling in (name, api.snake_case(name))),
    }
)
"""Calls that give a note its text."""


class FileRequest(Value):
    """A file call of a statement, with its path relative to the workspace."""

    operation: str
    path: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}


class ToolRequest(Value):
    """A tool call of a statement, with plain arguments."""

    tool: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}


class ServerRequest(Value):
    """A call of a tool of an MCP server, with plain arguments by their names."""

    server: str
    method: str
    kwargs: dict[str, Any] = {}


@dataclass(frozen=True)
class Finished:
    """The result that ``finish`` was given, after it passed the job's schema; ``patch``: what the
    job changed is handed over with it.
    """

    result: Any
    patch: bool = False


@dataclass
class JobHost:
    """Answers the calls of one statement.

    ``now`` is workflow time in seconds; ``tools`` are the names of the job's tools, ``servers`` its
    MCP servers by their names. ``outputs`` are those of its commands, if it may change its
    workspace; None: it may not. ``on_files`` are those of the tools that work on its files.
    ``lend`` has a budget for a sub-job, if it may start any. ``bounded`` is asked where a schema or
    a result is refused: False for what was checked before such checks were bounded;
    ``bounded_functions`` where a function of the standard library fails that the host computes.
    ``ticks`` are as an execution has them; ``known_ticks`` those of the record that is followed.
    Before the ``dialect`` ``WRITES`` no bytes are written by ``open``; before ``NATURAL`` nobody is
    told what to write for data.
    """

    graph: ContextGraph
    tools: frozenset[str]
    result_schema: Mapping[str, Any] | None
    turn: int
    now: float
    servers: Mapping[str, ServerListing] = field(default_factory=dict)
    outputs: hands.Outputs | None = None
    on_files: frozenset[str] = frozenset()
    lend: Lend | None = None
    bounded: Callable[[], bool] = lambda: True
    bounded_functions: Callable[[], bool] = lambda: True
    dialect: Dialect = Dialect.LATEST
    finished: Finished | None = None
    asked_to_condense: bool = False
    touched: list[str] = field(default_factory=list)
    known_ticks: Mapping[str, int] = field(default_factory=dict)
    ticks: dict[str, int] = field(default_factory=dict)
    _effects: int = 0
    _made: int = 0
    _opened: dict[tuple[str, str], Any] = field(default_factory=dict)
    _output: list[str] = field(default_factory=list)

    def function(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> HostAnswer:
        """A contract function, a tool, or a ``NameError``.

        No key that the statement put together leaves it.
        """
        args, kwargs = without_keys(args), without_keys(kwargs)
        if name == "finish":
            return self._finish(args, kwargs)
        if name == "condense":
            return self._condense(args, kwargs)
        if name == "view":
            args = (self._source(args[0]), *args[1:]) if args else args
            kwargs = {
                key: self._source(value) if key == "path" else value
                for key, value in kwargs.items()
            }
        if name in CONTEXT_FUNCTIONS:
            problem = _too_long(name, args, kwargs) or self._too_many(name)
            if problem is not None:
                return problem
            return self._outcome(name, self.graph.call_function(name, args, kwargs, turn=self.turn))
        if name == pure.FUNCTION:
            return self._computed(args, kwargs)
        if self.outputs is not None and name in api.HAND_NAMES:
            return self._change(name, lambda: hands.asked(name, args, kwargs))
        if name == api.SPAWN.name and self.lend is not None:
            return self._too_many(name) or self._spawn(self.lend, args, kwargs)
        if name in self.on_files:
            return self._change(name, lambda: hands.asked_of_tool(name, _arguments(args, kwargs)))
        if name in self.tools:
            return self._asked(
                EffectKind.TOOL, name, lambda: ToolRequest(tool=name, **_arguments(args, kwargs))
            )
        if name == SERVER_CALL and len(args) >= 2 and args[0] in self.servers:
            return self._server(self.servers[args[0]], str(args[1]), args[2:], kwargs)
        return Failure("NameError", f"name '{name}' is not defined")

    def _server(
        self, server: ServerListing, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> HostAnswer:
        """A call of a tool of an MCP server, by what it offered when the job began."""
        name = f"{server.name}.{method}"
        if server.error:
            return Failure("RuntimeError", f"{name}(): {server.error}")
        if server.tool(method) is None:
            return Failure(
                "AttributeError", f"the server {server.name} has no tool {as_literal(method)}"
            )
        if args:
            return Failure("TypeError", f"{name}() takes its arguments by name")
        return self._asked(
            EffectKind.SERVER,
            name,
            lambda: ServerRequest(
                server=server.name, method=method, kwargs=_arguments((), kwargs)["kwargs"]
            ),
        )

    def _too_many(self, name: str) -> Failure | None:
        """Count a node that is to be made, and refuse one too many."""
        if name not in _MAKES:
            return None
        self._made += 1
        if len(self.graph.obj_ids) >= MAX_JOB_NODES:
            return Failure(
                "RuntimeError",
                f"{name}(): a job may have {MAX_JOB_NODES:,} views, groups and notes; reuse them",
            )
        if self._made > MAX_NODES:
            return Failure(
                "RuntimeError",
                f"{name}(): a statement may make {MAX_NODES:,} views, groups and notes; go on in"
                " the next one",
            )
        return None

    def method(
        self, obj_id: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> HostAnswer:
        """A method of a node."""
        args, kwargs = without_keys(args), without_keys(kwargs)
        if (problem := _too_long(name, args, kwargs)) is not None:
            return problem
        return self._outcome(
            name, self.graph.call_method(obj_id, name, args, kwargs, turn=self.turn)
        )

    def attribute(self, obj_id: str, name: str) -> Answer:
        """An attribute of a node."""
        if name == "last_tick_turn" and obj_id not in self.ticks:
            if (known := self.known_ticks.get(obj_id)) is not None:
                self.graph.ticked_at(obj_id, known, turn=self.turn)
            self.ticks[obj_id] = self.graph.state(obj_id).last_tick_turn
        answer = self._outcome(name, self.graph.get_attribute(obj_id, name))
        return (
            Failure("AttributeError", f"{name} cannot be read here")
            if isinstance(answer, Effect)
            else answer
        )

    def name(self, name: str) -> Answer:
        """``All`` is the only value among the contract's names."""
        return ReturnValue(ALL_TOKENS) if name == "All" else NotHandled()

    def system(self, operation: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> HostAnswer:
        """The clock at once; files as effects, inside the workspace; anything else as the
        interpreter sees fit.
        """
        if operation in _CLOCK:
            return ReturnValue(self._clock(operation, args))
        if operation not in os_values.READ_OPERATIONS | os_values.WRITE_OPERATIONS:
            return NotHandled()
        args, kwargs = without_keys(args), without_keys(kwargs)
        # The argument may be a file that was opened, which has its path with it.
        path = os_values.workspace_path(without_keys(str(getattr(args[0], "path", args[0]))))
        if path.startswith("/"):
            return Failure(
                "PermissionError",
                f"{as_literal(path)} is outside the workspace, {os_values.VIRTUAL_ROOT!r}, to which"
                " paths are relative",
            )
        if os_values.would_write(operation, args[1:], kwargs):
            if self.outputs is not None:
                return self._change(
                    operation,
                    lambda: hands.asked_of_system(
                        operation, path, args[1:], kwargs, binary=self.dialect >= Dialect.WRITES
                    ),
                )
            return Failure("PermissionError", f"{os_values.READ_ONLY}: {as_literal(path)}")
        # What was opened came with its content: reading it is no second effect.
        if operation in _READS and (path, operation) in self._opened:
            return ReturnValue(self._opened[path, operation])
        return self._asked(
            EffectKind.FILE,
            operation,
            lambda: FileRequest(operation=operation, path=path, **_arguments(args[1:], kwargs)),
        )

    def answered(self, effect: Effect, result: Any) -> Answer:
        """Resume with a read's, a file call's or a tool's result."""
        if isinstance(result, ReadResult):
            made = self.graph.complete(effect.call, result, turn=self.turn)
            return self._answer(effect.name, made)
        if effect.kind is EffectKind.CHANGE:
            # What was read before is of another version.
            self._opened.clear()
        if result.error_type is not None:
            return Failure(result.error_type, result.error_message)
        if effect.kind is EffectKind.SPAWN:
            args, kwargs = effect.call
            ended = result.ended is not None
            made = self.graph.spawned(
                result.job, effect.request.goal, args, kwargs, ended=ended, turn=self.turn
            )
            return self._answer("view", made)
        if effect.kind in {EffectKind.TOOL, EffectKind.SERVER}:
            return ReturnValue(result.value)
        if effect.kind is EffectKind.CHANGE:
            return self._changed(effect, result.value)
        request: FileRequest = effect.request
        value = os_values.decode(request.operation, result.value, result.encoding)
        if request.operation == "open":
            read = "Path.read_bytes" if isinstance(value, bytes) else "Path.read_text"
            self._opened[request.path, read] = value
            mode = os_values.open_mode(request.args, request.kwargs)
            return ReturnValue(MontyFileHandle(os_values.virtual_path(request.path), mode))
        return ReturnValue(value)

    def _spawn(self, lend: Lend, args: tuple[Any, ...], kwargs: dict[str, Any]) -> HostAnswer:
        try:
            request = lend(wish_of(args, kwargs, plain, self.bounded))
        except Refused as refused:
            return Failure(refused.raised.type, refused.raised.message)
        except TypeError as error:
            return self._no_data("spawn", error)
        return self._asked(EffectKind.SPAWN, api.SPAWN.name, lambda: request, (args, kwargs))

    def _change(self, name: str, question: Callable[[], hands.ChangeRequest]) -> Effect | Failure:
        try:
            request = question()
        except Refused as refused:
            return Failure(refused.raised.type, refused.raised.message)
        except TypeError as error:
            return self._no_data(name, error)
        return self._asked(EffectKind.CHANGE, name, lambda: request)

    def _changed(self, effect: Effect, value: Any) -> ReturnValue:
        made = hands.resumed_with(effect.name, effect.request, value)
        if isinstance(made, hands.CommandResult) and self.outputs is not None:
            self.outputs.take(made)
        return ReturnValue(made)

    def _source(self, value: Any) -> Any:
        """What a view is made of: an opened file or a path, as the workspace knows it, or what a
        command printed; other values unchanged.
        """
        if self.outputs is not None:
            value = self.outputs.address(value)
        path = value.path if isinstance(value, MontyFileHandle) else value
        if isinstance(path, PurePosixPath | str):
            return os_values.workspace_path(str(path))
        return path

    def take_output(self) -> str:
        """What ``show`` displayed since the last time."""
        text = "\n".join(self._output)
        self._output.clear()
        return text

    def _answer(self, name: str, outcome: Outcome) -> Answer:
        answer = self._outcome(name, outcome)
        if isinstance(answer, Effect):
            return Failure("RuntimeError", "a read led to another read")
        return answer

    def _outcome(self, name: str, outcome: Outcome) -> HostAnswer:
        match outcome:
            case Returned(value=value, display=True):
                self._output.append(str(value))
                return ReturnValue(None)
            case Returned(value=value):
                if name == "view" and isinstance(value, NodeRef):
                    self.touched.append(value.obj_id)
                return ReturnValue(value)
            case Raised(type=type_, message=message):
                return Failure(type_, message)
            case NeedsRead(request=request, call=call):
                return self._asked(EffectKind.READ, name, lambda: request, call)

    def _asked(
        self, kind: EffectKind, name: str, request: Callable[[], Value], call: Any = None
    ) -> Effect | Failure:
        """The effect, unless its arguments are not plain, its question is too large, or it is one
        too many.
        """
        try:
            question = request()
        except TypeError as error:
            return self._no_data(name, error)
        # Counted as the JSON that goes into the history, not by what Python holds.
        if _size(question.model_dump(mode="json")) > MAX_REQUEST_BYTES:
            return Failure(
                "ValueError",
                f"{name}(): the arguments are too large: at most {MAX_REQUEST_BYTES:,} bytes of"
                " JSON",
            )
        self._effects += 1
        if self._effects > MAX_EFFECTS:
            return Failure(
                "RuntimeError",
                f"{name}(): a statement may read files and call tools {MAX_EFFECTS:,} times; go on"
                " in the next one",
            )
        return Effect(kind, name, question, call)

    def _finish(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        try:
            bound = api.finish(hands=self.outputs is not None).bind(args, kwargs)
            result = plain(bound.get("result"), "result")
        except Refused as refused:
            return Failure(refused.raised.type, refused.raised.message)
        except TypeError as error:
            return self._no_data("finish", error)
        if _size(result) > MAX_REQUEST_BYTES:
            return Failure(
                "ValueError",
                f"finish(): the result is too large: at most {MAX_REQUEST_BYTES:,} bytes of JSON",
            )
        if (problem := self._result_problem(result)) is not None:
            return Failure("ValueError", f"finish(): {problem}; the job goes on")
        self.finished = Finished(result, patch=bound.get("patch") is True)
        return ReturnValue(None)

    def _no_data(self, name: str, error: TypeError) -> Failure:
        instead = ""
        if isinstance(error, NoData) and self.dialect >= Dialect.NATURAL:
            instead = f": write {error.instead}"
        return Failure("TypeError", f"{name}(): {error}{instead}")

    def _result_problem(self, result: Any) -> str | None:
        if self.result_schema is None:
            return None
        problem = result_problem(result, self.result_schema)
        if problem is not None and not self.bounded():
            return before_bounds.result_problem(result, self.result_schema)
        return problem

    def _computed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        """What a function of the standard library gives that the host computes."""
        answer = _answer(pure.call, args, kwargs)
        if isinstance(answer, Failure) and not self.bounded_functions():
            return _answer(computed_before.call, args, kwargs)
        return answer

    def _condense(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        if args or kwargs:
            return Failure("TypeError", "condense() takes no arguments")
        self.asked_to_condense = True
        return ReturnValue(None)

    def _clock(self, operation: str, args: tuple[Any, ...]) -> Any:
        moment = datetime.datetime.fromtimestamp(self.now, tz=datetime.UTC)
        match operation:
            case "time.time":
                return self.now
            case "date.today":
                return moment.date()
            case _:
                zone = args[0] if args else None
                return (
                    moment.astimezone(zone)
                    if isinstance(zone, datetime.tzinfo)
                    else moment.replace(tzinfo=None)
                )


def _answer(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
    name, *rest = args
    try:
        return ReturnValue(call(name, tuple(rest), kwargs))
    except Exception as error:  # noqa: BLE001
        known = "ValueError" if isinstance(error, ValueError | pure.Refused) else "TypeError"
        return Failure(known, f"{name}(): {error}")


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """A call's arguments as a request's fields, plain."""
    return {
        "args": tuple(plain(value, f"argument {index + 1}") for index, value in enumerate(args)),
        "kwargs": {key: plain(value, key) for key, value in kwargs.items()},
    }


def _too_long(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Failure | None:
    """What a node is told stays in its state, its line of the handle table and every record of it;
    a note's text has its own bound.
    """
    if name in _WRITES:
        return None
    if any(isinstance(value, str) and len(value) > MAX_TEXT for value in (*args, *kwargs.values())):
        return Failure("ValueError", f"{name}(): an argument has more than {MAX_TEXT:,} characters")
    return None


def _size(value: Any) -> int:
    return len(canonical_json(value))
