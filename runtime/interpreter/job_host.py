"""The program around a job's statements: context calls, tools, the workspace's files, the clock, and ``finish``."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import jsonschema
from pydantic_monty import MontyFileHandle

from runtime.context.graph import ContextGraph
from runtime.context.outcomes import NeedsRead, NodeRef, Outcome, Raised, Returned
from runtime.context.sources import ALL_TOKENS, ReadResult
from runtime.interpreter import os_values
from runtime.interpreter.host import Answer, Effect, EffectKind, Failure, Given, HostAnswer, NotHandled
from runtime.values import Value

CONTEXT_FUNCTIONS = frozenset({"view", "group", "ls", "show", "pin", "tick", "wait", "wait_for", "note"})
_CLOCK = frozenset({"datetime.now", "date.today", "time.time"})
_READS = frozenset({"Path.read_text", "Path.read_bytes"})


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


@dataclass(frozen=True)
class Finished:
    """The result that ``finish`` was given, after it passed the job's schema."""

    result: Any


@dataclass
class JobHost:
    """Answers the calls of one statement. ``now`` is workflow time in seconds; ``tools`` are the names of the job's tools."""

    graph: ContextGraph
    tools: frozenset[str]
    result_schema: Mapping[str, Any] | None
    turn: int
    now: float
    finished: Finished | None = None
    touched: list[str] = field(default_factory=list)
    _opened: dict[tuple[str, str], Any] = field(default_factory=dict)
    _output: list[str] = field(default_factory=list)

    def function(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> HostAnswer:
        """A contract function, a tool, or a ``NameError``."""
        if name == "finish":
            return self._finish(args, kwargs)
        if name in CONTEXT_FUNCTIONS:
            if args and isinstance(args[0], MontyFileHandle):
                args = (args[0].path, *args[1:])
            args = tuple(_path_text(value) for value in args)
            kwargs = {key: _path_text(value) for key, value in kwargs.items()}
            return self._outcome(name, self.graph.call_function(name, args, kwargs, turn=self.turn))
        if name in self.tools:
            try:
                request = ToolRequest(
                    tool=name,
                    args=tuple(plain(value, f"argument {index + 1}") for index, value in enumerate(args)),
                    kwargs={key: plain(value, key) for key, value in kwargs.items()},
                )
            except TypeError as error:
                return Failure("TypeError", f"{name}(): {error}")
            return Effect(EffectKind.TOOL, name, request)
        return Failure("NameError", f"name '{name}' is not defined")

    def method(self, obj_id: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> HostAnswer:
        """A method of a node."""
        return self._outcome(name, self.graph.call_method(obj_id, name, args, kwargs, turn=self.turn))

    def attribute(self, obj_id: str, name: str) -> Answer:
        """An attribute of a node."""
        answer = self._outcome(name, self.graph.get_attribute(obj_id, name))
        return Failure("AttributeError", f"{name} cannot be read here") if isinstance(answer, Effect) else answer

    def name(self, name: str) -> Answer:
        """``All`` is the only value among the contract's names."""
        return Given(ALL_TOKENS) if name == "All" else NotHandled()

    def system(self, operation: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> HostAnswer:
        """The clock at once; files as effects, inside the workspace; anything else as the interpreter sees fit."""
        if operation in _CLOCK:
            return Given(self._clock(operation, args))
        if operation not in os_values.READ_OPERATIONS | os_values.WRITE_OPERATIONS:
            return NotHandled()
        path = os_values.workspace_path(str(getattr(args[0], "path", args[0])))
        if path.startswith("/"):
            return Failure("PermissionError", f"{path!r} is outside the workspace; paths are relative to it")
        if os_values.would_write(operation, args[1:], kwargs):
            return Failure("PermissionError", f"{os_values.READ_ONLY}: {path!r}")
        if operation in _READS and (path, operation) in self._opened:
            return Given(self._opened[path, operation])
        request = FileRequest(
            operation=operation,
            path=path,
            args=tuple(plain(value, "argument") for value in args[1:]),
            kwargs={key: plain(value, key) for key, value in kwargs.items()},
        )
        return Effect(EffectKind.FILE, operation, request)

    def answered(self, effect: Effect, result: Any) -> Answer:
        """Resume with a read's, a file call's or a tool's result."""
        if isinstance(result, ReadResult):
            answer = self._outcome(effect.name, self.graph.complete(effect.call, result, turn=self.turn))
            return Failure("RuntimeError", "a read led to another read") if isinstance(answer, Effect) else answer
        if result.error_type is not None:
            return Failure(result.error_type, result.error_message)
        if effect.kind is EffectKind.TOOL:
            return Given(result.value)
        request: FileRequest = effect.request
        value = os_values.decode(request.operation, result.value, result.encoding)
        if request.operation == "open":
            read = "Path.read_bytes" if isinstance(value, bytes) else "Path.read_text"
            self._opened[request.path, read] = value
            mode = os_values.open_mode(request.args, request.kwargs)
            return Given(MontyFileHandle(os_values.virtual_path(request.path), mode))
        return Given(value)

    def take_output(self) -> str:
        """What ``show`` displayed since the last time."""
        text = "\n".join(self._output)
        self._output.clear()
        return text

    def _outcome(self, name: str, outcome: Outcome) -> HostAnswer:
        match outcome:
            case Returned(value=value, display=True):
                self._output.append(str(value))
                return Given(None)
            case Returned(value=value):
                if name == "view" and isinstance(value, NodeRef):
                    self.touched.append(value.obj_id)
                return Given(value)
            case Raised(type=type_, message=message):
                return Failure(type_, message)
            case NeedsRead(request=request, call=call):
                return Effect(EffectKind.READ, name, request, call)

    def _finish(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        if len(args) + len(kwargs) > 1 or set(kwargs) - {"result"}:
            return Failure("TypeError", "finish() takes one argument: finish(result)")
        try:
            result = plain(args[0] if args else kwargs.get("result"), "result")
        except TypeError as error:
            return Failure("TypeError", f"finish(): {error}")
        if (problem := _schema_problem(result, self.result_schema)) is not None:
            return Failure("ValueError", f"finish(): {problem}; the job goes on")
        self.finished = Finished(result)
        return Given(None)

    def _clock(self, operation: str, args: tuple[Any, ...]) -> Any:
        moment = datetime.datetime.fromtimestamp(self.now, tz=datetime.UTC)
        match operation:
            case "time.time":
                return self.now
            case "date.today":
                return moment.date()
            case _:
                zone = args[0] if args else None
                return moment.astimezone(zone) if isinstance(zone, datetime.tzinfo) else moment.replace(tzinfo=None)


def _schema_problem(result: Any, schema: Mapping[str, Any] | None) -> str | None:
    if schema is None:
        return None
    validator = jsonschema.validators.validator_for(schema)(schema)
    worst = jsonschema.exceptions.best_match(validator.iter_errors(result))
    if worst is None:
        return None
    return f"result{''.join(f'[{part!r}]' for part in worst.absolute_path)}: {worst.message}"


def plain(value: Any, where: str) -> Any:
    """``value`` as JSON data: paths as text, tuples as lists.

    Raises:
        TypeError: for handles, sets, bytes and other values that JSON does not have.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            if value != value or value in (float("inf"), float("-inf")):
                raise TypeError(f"{where} is {value}, which JSON does not have")
            return value
        case PurePosixPath():
            return _path_text(value)
        case list() | tuple():
            return [plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
        case dict():
            for key in value:
                if not isinstance(key, str):
                    raise TypeError(f"{where} has the key {key!r}; keys must be strings")
            return {key: plain(item, f"{where}[{key!r}]") for key, item in value.items()}
        case NodeRef(obj_id=obj_id):
            raise TypeError(
                f"{where} is the handle {obj_id}; only plain data (None, bool, int, float, str, list, dict) is taken"
            )
        case _:
            raise TypeError(
                f"{where} is a {type(value).__name__}; only plain data (None, bool, int, float, str, list, dict) is taken"
            )


def _path_text(value: Any) -> Any:
    """A path as the workspace knows it; other values unchanged."""
    return os_values.workspace_path(str(value)) if isinstance(value, PurePosixPath | str) else value
