"""Type-checking a statement before it runs, against the contract's stubs and the variables that
exist.

Monty's own checker remembers the source of statements that succeeded, and only of those: names that
a failed statement did bind would be unknown to it, and its memory would grow with the job. So one
line before the statement binds the existing names to declarations of their types, and at its start
stands the ``checker``'s gate, so nothing runs or is remembered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from pydantic_monty import MontyError, MontySyntaxError, MontyTypingError

from runtime.interpreter import checker, output, phrases
from runtime.interpreter.checker import GATE
from runtime.interpreter.executions import ExceptionInfo
from runtime.interpreter.objections import MESSAGE_CHARS, NO_OBJECTION, Opinion, opinion

_DECLARED = "holdfast_is_"
_ANY = "Any"
_PLAIN = {"int", "float", "str", "bytes", "bool"}
_GENERIC = {
    "list": "list[Any]",
    "dict": "dict[Any, Any]",
    "set": "set[Any]",
    "frozenset": "frozenset[Any]",
    "tuple": "tuple[Any, ...]",
}
_LOCATION = re.compile(r"^main\.py:(\d+):(\d+): ")
_FUTURE = re.compile(r"^from __future__ import [\w, ]+$", re.MULTILINE)
"""Must be a file's first line, and the preamble is."""

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
callable: Any
classmethod: Any
filter: Any
format: Any
getattr: Any
hasattr: Any
map: Any
setattr: Any
staticmethod: Any
vars: Any
"""
"""Builtins that statements have and Monty's checker does not know; a test compares all of them."""


def check(
    source: str,
    stubs: str,
    names: Mapping[str, str],
    handle_types: frozenset[str],
    *,
    seconds: float = checker.SECONDS,
) -> Opinion:
    """What the parser or the checker has against ``source``.

    ``names`` maps existing variables to their type names; types beyond the built-in ones and
    ``handle_types`` count as ``Any``. ``seconds`` is the processor time that it may take.

    Raises:
        GaveUp: if the checker needs more.
        NoVerdict: if its process ends without an answer.
    """
    bindings = [f"{name} = {_DECLARED}{_kind(kind, handle_types)}" for name, kind in names.items()]
    preamble = "; ".join([GATE, *bindings]) + "\n"
    try:
        checker.feed(
            _declared(stubs, handle_types), preamble + _FUTURE.sub("pass", source), seconds
        )
    except MontyTypingError as error:
        return opinion(
            _own_lines(str(error)), stubs=stubs, handle_types=handle_types, source=source
        )
    except MontySyntaxError as error:
        return _refused("SyntaxError", str(error))
    except MontyError as error:
        inner = error.exception()
        if isinstance(inner, NotImplementedError):
            # Parsed after the check: what is lowered may be run all the same, and what is not fails
            # before anything ran.
            return NO_OBJECTION
        return _refused(type(inner).__name__, phrases.told(str(inner)))
    return NO_OBJECTION


def _refused(kind: str, message: str) -> Opinion:
    return Opinion(refusal=ExceptionInfo(type=kind, message=output.bounded(message, MESSAGE_CHARS)))


@lru_cache(maxsize=64)
def _declared(stubs: str, handle_types: frozenset[str]) -> str:
    """``stubs`` with a declaration of each type that a variable may have: the same for all
    statements of a job.
    """
    # Sorted: a warm session is known by this text.
    kinds = {**{kind: kind for kind in sorted(_PLAIN | handle_types)}, **_GENERIC, _ANY: _ANY}
    declarations = [f"{_DECLARED}{kind}: {annotation}" for kind, annotation in kinds.items()]
    return "\n".join(["from typing import Any", _MISSING, stubs, f"{GATE}: Any", *declarations, ""])


def _kind(kind: str, handle_types: frozenset[str]) -> str:
    return kind if kind in _PLAIN or kind in handle_types or kind in _GENERIC else _ANY


def _own_lines(text: str) -> list[str]:
    """Diagnostics with the statement's own line numbers, without the preamble's."""
    kept: list[str] = []
    own = True
    for line in text.strip().splitlines():
        match = _LOCATION.match(line)
        if match is not None:
            # The first line is the preamble, which is nobody's mistake.
            own = int(match[1]) > 1
            line = f"line {int(match[1]) - 1}, column {match[2]}: {line[match.end() :]}"
        if own:
            kept.append(line)
    return kept
