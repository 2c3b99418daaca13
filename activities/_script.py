"""The scripts of ``scripted/FILE`` models: what a reply may say, and how the reply to a prompt is
found.

FILE is a YAML list of replies, or a Python file with ``respond(messages)``, which returns one
reply. A reply is a text, or a mapping with the fields of ``ScriptedReply``. A list's reply to a
prompt is that of the turn: nothing is remembered between calls, so a retry or a resumed job gets
the same, and so does one whose earlier turns were condensed.
"""

from __future__ import annotations

import ast
import copy
import importlib.util
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from operator import itemgetter
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from runtime.base.errors import InputError
from runtime.base.plurals import counted
from runtime.projection.replies import TOOL_NAME

Messages = Sequence[dict[str, Any]]

_NO_FUNCTION = "it has no function respond(messages)"


class ScriptedFailure(BaseModel):
    """An error in place of a reply, as an HTTP provider would answer it.

    ``retry_after`` is in seconds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    status: int = Field(ge=400, le=599)
    message: str = "scripted failure"
    retry_after: float | None = Field(default=None, ge=0)


class ScriptedCall(BaseModel):
    """A native tool call as it stands, for replies that a well-behaved model would not give."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: str = TOOL_NAME
    arguments: str


class ScriptedReply(BaseModel):
    """One reply.

    ``code`` is delivered in the form that the job asked for; ``calls`` always as native calls.

    ``delay`` is in seconds, before the first piece. ``fail`` and ``break_after`` (a number of
    characters after which the stream breaks off) happen on the first ``times`` attempts at the
    turn, and the reply comes on the next.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    text: str = ""
    code: str | None = None
    calls: tuple[ScriptedCall, ...] = ()
    thinking: str | None = None
    refusal: str | None = None
    finish_reason: str | None = None
    delay: float = Field(default=0.0, ge=0)
    fail: ScriptedFailure | None = None
    break_after: int | None = Field(default=None, ge=0)
    times: int = Field(default=1, ge=1)


def reply_to(file: str, messages: Messages, turn: int) -> ScriptedReply:
    """The reply of the script ``file`` to the prompt of ``turn``, from 1.

    Raises:
        InputError: the file cannot be used, has no such reply, or its ``respond`` failed.
    """
    path = Path(file)
    try:
        state = path.stat()
    except OSError as error:
        raise InputError(f"scripted model {file}: {error.strerror}") from error
    # By its time and size: a script that was changed is read again, also within one process.
    if path.suffix == ".py":
        return _answered(file, _policy(path, state.st_mtime_ns, state.st_size), messages)
    replies = _replies(path, state.st_mtime_ns, state.st_size)
    if turn > len(replies):
        raise InputError(
            f"scripted model {file}: it has {counted(len(replies), 'reply', 'replies')}, and reply"
            f" {turn} was asked for"
        )
    return replies[turn - 1]


def fault(file: str) -> str | None:
    """Why the script ``file`` can give no reply at all, as far as reading it tells: what is Python
    is parsed and not run. That it is there is seen by who named it.
    """
    path = Path(file)
    try:
        state = path.stat()
        if path.suffix == ".py":
            if not _may_answer(ast.parse(path.read_bytes(), path.name)):
                return f"scripted model {file}: {_NO_FUNCTION}"
        elif not _replies(path, state.st_mtime_ns, state.st_size):
            return f"scripted model {file}: it has no reply"
    except FileNotFoundError:
        return None
    except SyntaxError as error:
        at = f", line {error.lineno}" if error.lineno is not None else ""
        return f"scripted model {file}{at}: SyntaxError: {error.msg}"
    # Of a text that is nested too deep, either parser fails by one of the last two.
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        return f"scripted model {file}: {type(error).__name__}: {error}"
    except InputError as error:
        return str(error)
    return None


def replies_in(messages: Messages) -> int:
    """How many replies a prompt has already."""
    return list(map(itemgetter("role"), messages)).count("assistant")


def read_reply(value: Any, where: str) -> ScriptedReply:
    """A reply from what a script says: a text, or a mapping.

    Raises:
        InputError: it is neither, or a field is wrong; ``where`` says which script.
    """
    try:
        return (
            ScriptedReply(text=value)
            if isinstance(value, str)
            else ScriptedReply.model_validate(value)
        )
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(map(str, problem["loc"])) or "the reply"
        raise InputError(f"scripted model {where}: {field}: {problem['msg']}") from error


def _may_answer(module: ast.Module) -> bool:
    """Whether a script may have its function once it has run: where nothing in it has that name, it
    can get it by names that it brings in, or makes, alone.
    """
    for node in ast.walk(module):
        match node:
            case (
                ast.FunctionDef(name="respond")
                | ast.AsyncFunctionDef(name="respond")
                | ast.ClassDef(name="respond")
                | ast.Name(id="respond", ctx=ast.Store())
                | ast.Name(id="globals" | "exec" | "setattr" | "vars" | "locals")
            ):
                return True
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                if any((alias.asname or alias.name) in {"respond", "*"} for alias in names):
                    return True
    return False


def _answered(file: str, respond: Callable[[Any], Any], messages: Messages) -> ScriptedReply:
    try:
        # A copy: what a script changes in them would be archived as what was sent.
        value = respond(copy.deepcopy(list(messages)))
    # Of a script that ends its program, the worker would say no more than that, attempt by attempt.
    except (Exception, SystemExit) as error:
        raise InputError(
            f"scripted model {file}: respond raised {type(error).__name__}: {error}"
        ) from error
    return read_reply(value, file)


@lru_cache(maxsize=64)
def _replies(path: Path, _mtime: int, _size: int) -> tuple[ScriptedReply, ...]:
    try:
        listed = _listed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, YAMLError) as error:
        # YAML's own words are of several lines.
        raise InputError(f"scripted model {path}: {' '.join(str(error).split())}") from error
    if not isinstance(listed, list):
        raise InputError(f"scripted model {path}: a list of replies is expected")
    return tuple(read_reply(value, f"{path}, reply {n}") for n, value in enumerate(listed, 1))


def _listed(text: str) -> Any:
    """What a script says. JSON is YAML too, but takes that parser hundreds of times as long."""
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except ValueError:
        # Also where a name stands twice: this parser says in which lines.
        return YAML(typ="safe", pure=True).load(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a name stands twice")
    return mapping


@lru_cache(maxsize=64)
def _policy(path: Path, _mtime: int, _size: int) -> Callable[[Any], Any]:
    name = "holdfast_script_" + sha256(str(path).encode()).hexdigest()[:16]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"scripted model {path}: it cannot be imported")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise InputError(f"scripted model {path}: {type(error).__name__}: {error}") from error
    respond = getattr(module, "respond", None)
    if not callable(respond):
        raise InputError(f"scripted model {path}: {_NO_FUNCTION}")
    return respond  # type: ignore[no-any-return]
