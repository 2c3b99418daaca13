"""The calls by which a statement changes its job's workspace: from what it wrote to a question for
the activity, and from the answer to what resumes it.
"""

from __future__ import annotations

import base64
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from pydantic_monty import MontyFileHandle

from runtime.base import os_values
from runtime.base.digests import digest_bytes
from runtime.base.values import Value
from runtime.context import api
from runtime.context.outcomes import Refused

MAX_TIMEOUT = 86_400.0
"""Seconds that a command may ask for."""

MAX_OUTPUTS = 200
"""Streams of commands that ``view`` knows by their text."""

TOOL = "tool"
"""The operation that is a call of a tool which works on the job's files."""

_SIGNATURES = {signature.name: signature for signature in api.HANDS}


class ChangeRequest(Value):
    """A call that changes the workspace. ``path`` is what it is about, for a reader."""

    operation: str
    path: str
    arguments: dict[str, Any]


class CommandResult(NamedTuple):
    """What ``sh`` gives: a tuple, which the interpreter knows by its class's name.

    ``output`` is where a view finds all that the command printed.
    """

    exit_code: int
    stdout: str
    stderr: str
    seconds: float
    note: str
    output: str


# The interpreter shows a class of the standard library's by its bare name.
CommandResult.__module__ = "builtins"


def asked(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ChangeRequest:
    """The question of one of the contract's functions.

    Raises:
        Refused: if its arguments do not fit.
    """
    bound = _SIGNATURES[name].bind(args, kwargs)
    if name == "sh":
        return _command(bound)
    path = _path(name, bound["path"])
    match name:
        case "write":
            return _request(name, path, {**_data(name, bound["text"]), "parents": True})
        case "edit":
            for key in ("old", "new"):
                if not isinstance(bound[key], str):
                    raise Refused(TypeError, f"edit(): {key} is not a text")
            count = bound.get("count", 1)
            # ``True`` is an int to Python.
            if not isinstance(count, int) or isinstance(count, bool):
                raise Refused(TypeError, "edit(): count is not a whole number")
            return _request(name, path, {"old": bound["old"], "new": bound["new"], "count": count})
        case "move":
            return _request(name, path, {"to": _path(name, bound["to"]), "into": True})
        case _:
            return _request(name, path, {})


def asked_of_system(
    operation: str,
    path: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    binary: bool,
) -> ChangeRequest:
    """The question of a call of ``open``, ``os`` or ``pathlib`` that writes. Without ``binary``
    each file is opened for text, as runs from before the patch ``WRITES`` have it.

    Raises:
        Refused: if it is none that a workspace has.
    """
    match operation:
        case "open":
            mode = os_values.open_mode(args, kwargs)
            # By what is written first, which is nothing, it is known what may be written then.
            nothing = _data(operation, b"" if binary and "b" in mode else "")
            # To open a file for writing empties it, as in Python, also if nothing is written then.
            if "w" in mode:
                return _request("write", path, {**nothing, "parents": False})
            return _request("append", path, nothing)
        case "Path.write_text" | "Path.write_bytes":
            return _request("write", path, {**_data(operation, args[0]), "parents": False})
        case "Path.append_text" | "Path.append_bytes":
            return _request("append", path, _data(operation, args[0]))
        case "Path.mkdir":
            options = {key: bool(kwargs.get(key, False)) for key in ("parents", "exist_ok")}
            return _request("mkdir", path, options)
        case "Path.unlink" | "Path.rmdir":
            return _request(operation.removeprefix("Path."), path, {})
        case "Path.rename":
            return _request("move", path, {"to": _path(operation, args[0]), "into": False})
        case _:
            raise Refused(NotImplementedError, f"{operation} is not available in a statement")


def asked_of_tool(name: str, arguments: dict[str, Any]) -> ChangeRequest:
    """The question of a call of a tool that works on the job's files."""
    both = {"args": list(arguments["args"]), "kwargs": arguments["kwargs"]}
    return ChangeRequest(operation=TOOL, path=name, arguments=both)


def resumed_with(operation: str, request: ChangeRequest, value: Any) -> Any:
    """What resumes the call ``operation`` (the contract's function, or the system's)."""
    if request.operation == TOOL:
        return value
    match operation:
        case "sh":
            return CommandResult(**value)
        case "open":
            mode = "w" if request.operation == "write" else "a"
            mode += "b" if "data" in request.arguments else ""
            return MontyFileHandle(os_values.virtual_path(request.path), mode)
        case "Path.write_text" | "Path.append_text":
            return len(request.arguments["text"])
        case "Path.write_bytes" | "Path.append_bytes":
            return len(base64.b64decode(request.arguments["data"]))
        case "Path.rename":
            return PurePosixPath(os_values.virtual_path(request.arguments["to"]))
        case _:
            return None


class Outputs:
    """What commands printed, by its text: ``view(result.stdout)`` means the whole of it.

    ``known`` are addresses by digests, the oldest first.
    """

    def __init__(self, known: dict[str, str] | None = None) -> None:
        self.known = dict(known or {})

    def take(self, result: CommandResult) -> None:
        """Note what a command printed."""
        for name in ("stdout", "stderr"):
            if text := getattr(result, name):
                key = _key(text)
                # Taken out first, so that it stands last: what goes is what was printed longest
                # ago.
                self.known.pop(key, None)
                self.known[key] = f"{result.output}/{name}"
        for key in list(self.known)[: max(len(self.known) - MAX_OUTPUTS, 0)]:
            del self.known[key]

    def address(self, value: Any) -> Any:
        """The address of a command's output, for its result or one of its texts; else the value."""
        if isinstance(value, tuple):
            return getattr(value, "output", value)
        return self.known.get(_key(value), value) if isinstance(value, str) else value


def _command(bound: dict[str, Any]) -> ChangeRequest:
    command, env = bound["command"], bound.get("env") or {}
    timeout, stdin = bound.get("timeout", 60), bound.get("stdin", "")
    if not isinstance(command, str) or not isinstance(stdin, str):
        raise Refused(TypeError, "sh(): command and stdin are texts")
    if not isinstance(timeout, int | float) or not 0 < timeout <= MAX_TIMEOUT:
        raise Refused(ValueError, f"sh(): timeout is a number of seconds up to {MAX_TIMEOUT:,.0f}")
    texts = [text for pair in env.items() for text in pair] if isinstance(env, dict) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise Refused(TypeError, "sh(): env is a dict of texts")
    arguments = {"command": command, "timeout": float(timeout), "stdin": stdin, "env": env}
    return _request("sh", command.strip().partition("\n")[0], arguments)


def _request(operation: str, path: str, arguments: dict[str, Any]) -> ChangeRequest:
    fields = arguments if operation == "sh" else {"path": path, **arguments}
    return ChangeRequest(operation=operation, path=path[:4_000], arguments=fields)


def _path(call: str, value: Any) -> str:
    if not isinstance(value, str | PurePosixPath):
        raise Refused(TypeError, f"{call}(): a path is a text or a Path")
    return os_values.workspace_path(str(value))


def _data(call: str, value: Any) -> dict[str, str]:
    if isinstance(value, bytes):
        return {"data": base64.b64encode(value).decode("ascii")}
    if not isinstance(value, str):
        raise Refused(TypeError, f"{call}(): what is written is a text or bytes")
    return {"text": value}


def _key(text: str) -> str:
    return digest_bytes(text.encode("utf-8", "surrogatepass")).removeprefix("sha256:")[:16]
