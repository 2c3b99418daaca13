"""One call of a tool: checked arguments, and a bounded JSON result or the exception that the
statement gets.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_jsonable_python

from runtime.base.characters import as_unicode
from runtime.tools.functions import Arguments, Tool
from runtime.tools.results import wrong_result

# Well below the 2 MiB beyond which a payload fails a workflow task for ever (docs/facts.md).
MAX_RESULT_BYTES = 512 * 1024
MAX_MESSAGE = 4_000
"""Characters of an exception's message that a statement gets."""
MOST_CROSSING = 64 * 1024
"""Characters of one that cross to the worker, which masks secrets before it cuts: half of one is
found by no search, and who calls a tool may choose where its message is cut.
"""

RAISABLE = frozenset(
    {
        *(
            "ArithmeticError",
            "AssertionError",
            "AttributeError",
            "Exception",
            "FileExistsError",
            "FileNotFoundError",
        ),
        *(
            "ImportError",
            "IndexError",
            "IsADirectoryError",
            "KeyError",
            "LookupError",
            "MemoryError",
            "NameError",
        ),
        *(
            "ModuleNotFoundError",
            "NotADirectoryError",
            "NotImplementedError",
            "OSError",
            "OverflowError",
        ),
        *(
            "PermissionError",
            "RecursionError",
            "RuntimeError",
            "TimeoutError",
            "TypeError",
            "ValueError",
        ),
        "ZeroDivisionError",
    }
)
"""Built-in exceptions that the interpreter knows and that a message alone makes."""


@dataclass(frozen=True)
class Outcome:
    """What came of a call: a value that is plain JSON, or an exception by the name of its type."""

    value: Any = None
    error_type: str | None = None
    error_message: str = ""

    def plain(self) -> dict[str, Any]:
        """The outcome as it crosses to the worker."""
        return {
            "value": self.value,
            "error_type": self.error_type,
            "error_message": self.error_message,
        }


GAVE_UP = Outcome(error_type="RuntimeError", error_message="CancelledError: the tool gave up")


@dataclass(frozen=True)
class Call:
    """A call that fits the tool's annotations."""

    tool: Tool
    arguments: Arguments

    def run(self) -> Outcome:
        """A function's outcome. Whatever it raises is one: a retry would run the tool again."""
        try:
            return as_outcome(
                self.tool, self.tool.function(*self.arguments.args, **self.arguments.kwargs)
            )
        except BaseException as error:  # noqa: BLE001 the tool's exception is the statement's
            return failure(error)

    async def run_async(self) -> Outcome:
        """A coroutine function's outcome, as ``run``."""
        try:
            return as_outcome(
                self.tool, await self.tool.function(*self.arguments.args, **self.arguments.kwargs)
            )
        except asyncio.CancelledError:
            return GAVE_UP
        except BaseException as error:  # noqa: BLE001 the tool's exception is the statement's
            return failure(error)


def bound(tool: Tool, args: list[Any], kwargs: dict[str, Any]) -> Call | Outcome:
    """The call with its arguments coerced, or what is wrong with them."""
    try:
        return Call(tool, tool.bind(*args, **kwargs))
    except ValidationError as error:
        return _bad_arguments(tool, error)
    # A validator of the tool's own types may raise anything.
    except Exception as error:  # noqa: BLE001
        return failure(error)


def as_outcome(tool: Tool, value: Any) -> Outcome:
    """``value`` as JSON, or an error that says why it is none, is of another type than declared, or
    too long.
    """
    kind, name = type(value).__name__, tool.spec.name
    try:
        plain = to_jsonable_python(value)
        encoded = json.dumps(plain, ensure_ascii=False, allow_nan=False).encode()
        decoded = as_read(encoded)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        return Outcome(
            error_type="TypeError",
            error_message=f"{name}() returned a {kind} that is no JSON: {error}",
        )
    if (problem := wrong_result(name, tool.returns, decoded)) is not None:
        return Outcome(error_type="TypeError", error_message=crossing(problem))
    if len(encoded) > MAX_RESULT_BYTES:
        told = (
            f"{name}() returned {len(encoded)} bytes of JSON; at most {MAX_RESULT_BYTES} fit: ask"
            " for less"
        )
        return Outcome(error_type="ValueError", error_message=told)
    return Outcome(value=plain)


def as_read(encoded: bytes) -> Any:
    """A result as the workflow reads it, where it stands in a ``ToolResult``.

    What could not be read there must not reach it: its task would fail for ever.

    Raises:
        ValueError: if it is no JSON, or nested too deeply.
    """
    return from_json(b'{"value":%b}' % encoded, allow_inf_nan=False)["value"]


def _bad_arguments(tool: Tool, error: ValidationError) -> Outcome:
    """The first three things wrong with a call's arguments."""
    told = []
    for detail in error.errors(include_url=False, include_context=False)[:3]:
        first, *rest = detail["loc"] or ("arguments",)
        where = f"argument {first + 1}" if isinstance(first, int) else str(first)
        told.append(f"{'.'.join([where, *map(str, rest)])}: {detail['msg']}")
    return Outcome(
        error_type="TypeError", error_message=crossing(f"{tool.spec.name}(): {'; '.join(told)}")
    )


def failure(error: BaseException) -> Outcome:
    """An exception as the interpreter can raise it: as itself if it knows that, else as the nearest
    class that it is one of, with its own name before the message.
    """
    kind = type(error)
    nearest = next((base for base in kind.__mro__ if _is_raisable(base)), Exception)
    try:
        # str() of a KeyError is the repr of its key; raising it anew would quote that again.
        quoted = (
            isinstance(error, KeyError) and len(error.args) == 1 and isinstance(error.args[0], str)
        )
        message = error.args[0] if quoted else str(error)
    except Exception:  # noqa: BLE001 a broken __str__ must not make the tool run again
        message = "(its message cannot be read)"
    if nearest is kind:
        return Outcome(error_type=kind.__name__, error_message=crossing(message))
    # Of what nothing nearer is known than that it is an exception, as most of their own kind.
    name = "RuntimeError" if nearest is Exception else nearest.__name__
    return Outcome(error_type=name, error_message=crossing(f"{kind.__name__}: {message}"))


def _is_raisable(kind: type) -> bool:
    # Others may have a built-in one's name.
    return kind.__module__ == "builtins" and kind.__name__ in RAISABLE


def crossing(message: str) -> str:
    """``message`` as Unicode text that may cross to the worker."""
    return as_unicode(message)[:MOST_CROSSING]


def shortened(message: str) -> str:
    """``message``, in which secrets are masked, as Unicode text of at most ``MAX_MESSAGE``
    characters.
    """
    text = as_unicode(message)
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + "..."
