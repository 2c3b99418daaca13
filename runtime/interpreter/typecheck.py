"""Type-checking a statement before it runs, against the contract's stubs and the variables that exist.

Monty's own checker remembers the source of statements that succeeded, and only of those: names that a failed
statement did bind would be unknown to it, and its memory would grow with the job. So a statement is checked in a session of
its own: one line binds the existing names to declarations of their types, and a gate (a name that suspends) stands
before it, so nothing runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic_monty import FunctionSnapshot, MontyCrashedError, MontyError, MontySyntaxError, MontyTypingError

from runtime.interpreter import output, pool
from runtime.interpreter.objections import MESSAGE_CHARS, NO_OBJECTION, Opinion, opinion
from runtime.interpreter.records import ExceptionInfo

GATE = "holdfast_gate"
_DECLARED = "holdfast_is_"
_PLAIN = {"int", "float", "str", "bytes", "bool"}
_GENERIC = {
    "list": "list[Any]",
    "dict": "dict[Any, Any]",
    "set": "set[Any]",
    "frozenset": "frozenset[Any]",
    "tuple": "tuple[Any, ...]",
}
_LOCATION = re.compile(r"^main\.py:(\d+):(\d+): ")
_MISSING = """
class FileExistsError(OSError): ...
class FileNotFoundError(OSError): ...
class IsADirectoryError(OSError): ...
class NotADirectoryError(OSError): ...
class PermissionError(OSError): ...
class ImportError(Exception): ...
class ModuleNotFoundError(ImportError): ...
class UnboundLocalError(NameError): ...
class UnicodeDecodeError(ValueError): ...
class UnicodeEncodeError(ValueError): ...
filter: Any
format: Any
getattr: Any
hasattr: Any
map: Any
setattr: Any
"""
"""Builtins that Monty 1.4 runs and its checker does not know; a test compares all of them."""


_NO_TIME = "the type checker needed too much time or memory"


class GaveUp(Exception):
    """The checker needed too much time or memory: some sound loops make it go through all paths."""


def check(source: str, stubs: str, names: Mapping[str, str], handle_types: frozenset[str]) -> Opinion:
    """What the parser or the checker has against ``source``.

    ``names`` maps existing variables to their type names; types beyond the built-in ones and ``handle_types`` count as ``Any``.

    Raises:
        GaveUp: if the checker needs too long.
    """
    declarations = [f"{_DECLARED}{name}: {_annotation(kind, handle_types)}" for name, kind in names.items()]
    bindings = [f"{name} = {_DECLARED}{name}" for name in names]
    full_stubs = "\n".join(["from typing import Any", _MISSING, stubs, f"{GATE}: Any", *declarations, ""])
    preamble = "; ".join([GATE, *bindings]) + "\n"
    try:
        with pool.checking_session(full_stubs) as session:
            snapshot = session.feed_start(preamble + source)
            while isinstance(snapshot, FunctionSnapshot) and snapshot.function_name == "import_stubs":
                snapshot = snapshot.resume_not_handled()
    except MontyTypingError as error:
        return opinion(_own_lines(str(error)), stubs=stubs, handle_types=handle_types, source=source)
    except MontySyntaxError as error:
        return _refused("SyntaxError", str(error))
    except MontyCrashedError as crash:
        pool.raise_if_stopped(crash)
        raise GaveUp(_NO_TIME) from crash
    except MontyError as error:
        inner = error.exception()
        if isinstance(inner, MemoryError | TimeoutError):
            raise GaveUp(_NO_TIME) from error
        return _refused(type(inner).__name__, str(inner))
    return NO_OBJECTION


def _refused(kind: str, message: str) -> Opinion:
    return Opinion(refusal=ExceptionInfo(type=kind, message=output.bounded(message, MESSAGE_CHARS)))


def _annotation(kind: str, handle_types: frozenset[str]) -> str:
    if kind in _PLAIN or kind in handle_types:
        return kind
    return _GENERIC.get(kind, "Any")


def _own_lines(text: str) -> list[str]:
    """Diagnostics with the statement's own line numbers, without the preamble's."""
    kept: list[str] = []
    own = True
    for line in text.strip().splitlines():
        match = _LOCATION.match(line)
        if match is not None:
            own = int(match[1]) > 1
            line = f"line {int(match[1]) - 1}, column {match[2]}: {line[match.end() :]}"
        if own:
            kept.append(line)
    return kept
