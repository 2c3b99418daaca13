"""Type-checking a statement before it runs, against the contract's stubs and the variables that exist.

Monty's own checker remembers the source of statements that succeeded, and only of those: names that a failed
statement did bind would be unknown to it, and its memory would grow with the job. So a statement is checked in a session of
its own: one line binds the existing names to declarations of their types, and a gate (a name that suspends) stands
before it, so nothing runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic_monty import FunctionSnapshot, MontyError, MontySyntaxError, MontyTypingError

from runtime.interpreter import pool
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
_LOCATION = re.compile(r"^main\.py:(\d+):(\d+): ", re.MULTILINE)


def check(source: str, stubs: str, names: Mapping[str, str], handle_types: frozenset[str]) -> ExceptionInfo | None:
    """What the parser or the checker has against ``source``, or None.

    ``names`` maps existing variables to their type names; types beyond the built-in ones and ``handle_types`` count as ``Any``.
    """
    declarations = [f"{_DECLARED}{name}: {_annotation(kind, handle_types)}" for name, kind in names.items()]
    bindings = [f"{name} = {_DECLARED}{name}" for name in names]
    full_stubs = "\n".join(["from typing import Any", stubs, f"{GATE}: Any", *declarations, ""])
    preamble = "; ".join([GATE, *bindings]) + "\n"
    try:
        with pool.checking_session(full_stubs) as session:
            snapshot = session.feed_start(preamble + source)
            while isinstance(snapshot, FunctionSnapshot) and snapshot.function_name == "import_stubs":
                snapshot = snapshot.resume_not_handled()
    except MontyTypingError as error:
        return ExceptionInfo(type="TypeCheckError", message=_own_lines(str(error)))
    except MontySyntaxError as error:
        return ExceptionInfo(type="SyntaxError", message=str(error))
    except MontyError as error:
        return ExceptionInfo(type=type(error.exception()).__name__, message=str(error.exception()))
    return None


def _annotation(kind: str, handle_types: frozenset[str]) -> str:
    if kind in _PLAIN or kind in handle_types:
        return kind
    return _GENERIC.get(kind, "Any")


def _own_lines(text: str) -> str:
    """Diagnostics with the statement's own line numbers, without the preamble's."""
    kept: list[str] = []
    for line in text.strip().splitlines():
        match = _LOCATION.match(line)
        if match is None:
            kept.append(line)
        elif int(match[1]) > 1:
            kept.append(f"line {int(match[1]) - 1}, column {match[2]}: {line[match.end() :]}")
    return "\n".join(kept)
