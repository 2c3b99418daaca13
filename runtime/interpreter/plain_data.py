"""Values of a statement as JSON data, for what leaves it: arguments of tools, and the result."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from pydantic_monty import MontyClassProxy, MontyClassTypeProxy, MontyFileHandle, MontyStdTypeProxy

from runtime.base import os_values
from runtime.base.characters import as_literal
from runtime.context.outcomes import NodeRef
from runtime.interpreter.echo import text_of

MAX_DEPTH = 100
MAX_INT_BITS = 3_000
"""About 900 digits; Python refuses to print more than 4,300."""


class NoData(TypeError):
    """A value that is no plain data, with what to write ``instead``."""

    def __init__(self, message: str, instead: str) -> None:
        super().__init__(message)
        self.instead = instead


def plain(value: Any, where: str, depth: int = 0) -> Any:
    """``value`` as JSON data: paths as text, tuples as lists.

    Raises:
        NoData: for handles, sets, bytes and other values that JSON does not have.
        TypeError: for values that JSON does not have everywhere, or that are nested too deeply.
    """
    if depth > MAX_DEPTH:
        raise TypeError(f"{where.partition('[')[0]} is nested more than {MAX_DEPTH} levels deep")
    match value:
        case None | bool() | str():
            return value
        case int():
            if value.bit_length() > MAX_INT_BITS:
                raise TypeError(f"{where} has more than 900 digits; pass it as text")
            return value
        case float():
            # NaN is the one value that is not equal to itself.
            if value != value or value in (float("inf"), float("-inf")):
                raise TypeError(f"{where} is {value}, which JSON does not have")
            return value
        case PurePosixPath():
            return os_values.workspace_path(str(value))
        case list() | tuple():
            return [plain(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)]
        case dict():
            for key in value:
                if not isinstance(key, str):
                    raise NoData(
                        f"{where} has the key {text_of(key)[:80]}; keys must be strings",
                        "{str(key): value for key, value in d.items()}",
                    )
            return {
                key: plain(item, f"{where}[{as_literal(key[:40])}]", depth + 1)
                for key, item in value.items()
            }
        case _:
            what = (
                f"the handle {value.obj_id}" if isinstance(value, NodeRef) else f"a {_kind(value)}"
            )
            raise NoData(
                f"{where} is {what}; only plain data (None, bool, int, float, str, list, dict) is"
                " taken",
                _instead(value),
            )


def _instead(value: Any) -> str:
    match value:
        case set() | frozenset():
            return "sorted(...) of the set"
        case bytes():
            return "data.decode()"
        case MontyFileHandle():
            return "f.read()"
        case NodeRef():
            return "what it shows, handle.text"
        case MontyClassProxy():
            return "a dict of what it holds (asdict of a dataclass), or .value of an Enum's member"
        case _:
            return "str(...) of it"


def _kind(value: Any) -> str:
    """The type's name as the statement knows it."""
    sandboxed = isinstance(value, MontyClassProxy | MontyClassTypeProxy | MontyStdTypeProxy)
    return str(value.name) if sandboxed else type(value).__name__
