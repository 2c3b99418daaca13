"""What becomes of the type checker's diagnostics: which refuse a statement before it runs, and
which only warn.

The checker reads a statement as a type-annotated program, and a statement is not one:
``json.loads(...)["a"]``, a dictionary of mixed values or a module that is there in one place only
are sound Python. So a diagnostic refuses only where the statement is sure to fail, or where it is
about a call that the contract declares: everything else is a warning, told with the exception if
the statement then fails, and else to nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from runtime.interpreter import output, phrases, supplied
from runtime.interpreter.executions import ExceptionInfo

MESSAGE_CHARS = 2_000
WARNING_CHARS = 500
"""Characters of the warnings: they stand in the history of each statement that has some."""

_CERTAIN = frozenset({"invalid-syntax", "unresolved-reference"})
_OF_CALLS = frozenset(
    {
        "invalid-argument-type",
        "missing-argument",
        "parameter-already-assigned",
        "positional-only-parameter-as-kwarg",
        "too-many-positional-arguments",
        "unknown-argument",
    }
)
"""Rules that refuse a call of what the contract declares.

Of other functions the interpreter itself has the last word.
"""

_OF_HANDLES = frozenset({"unresolved-attribute", "invalid-assignment"})
_RULE = re.compile(r"line (\d+), column \d+: (?:error|warning)\[([\w-]+)\] (.*)", re.DOTALL)
_CALLED = re.compile(r"(?:function|bound method) `([\w.]+)`")
_FOUND = re.compile(r"found `(.*)`", re.DOTALL)
_HANDLE = re.compile(r"(?:Object|object) of type `(\w+)`")
_IMPORTED = re.compile(
    r"\[unresolved-import\] (?:Cannot resolve imported module|Module) `([\w.]+)`"
)
_UNKNOWN = re.compile(r"\[unresolved-reference\] Name `(\w+)` used when not defined$")
_DECLARED = re.compile(r"^def (\w+)\(", re.MULTILINE)


@dataclass(frozen=True)
class Opinion:
    """What the checker says of a statement: why it is refused, if it is, and what it only wonders
    about.
    """

    refusal: ExceptionInfo | None = None
    warnings: str = ""


NO_OBJECTION = Opinion()


def opinion(
    diagnostics: Iterable[str], *, stubs: str, handle_types: frozenset[str], source: str
) -> Opinion:
    """The diagnostics (``line 3, column 1: error[rule] text``), sorted into those that refuse and
    those that warn.
    """
    declared = frozenset(_DECLARED.findall(stubs))
    refusing: list[str] = []
    warning: list[str] = []
    for diagnostic in diagnostics:
        if _of_supplied(diagnostic):
            continue
        refuses = _refuses(diagnostic, declared, handle_types, source)
        (refusing if refuses else warning).append(_with_remedy(diagnostic))
    if not refusing:
        return Opinion(warnings=output.bounded("\n".join(warning), WARNING_CHARS))
    syntax = any("[invalid-syntax]" in line for line in refusing)
    message = output.bounded("\n".join(refusing), MESSAGE_CHARS)
    return Opinion(
        refusal=ExceptionInfo(type="SyntaxError" if syntax else "TypeCheckError", message=message)
    )


def is_refusal(exception: ExceptionInfo) -> bool:
    """Whether an exception is told as those of ``opinion`` are: what a statement raises is not."""
    return _RULE.match(exception.message) is not None and not exception.trace_summary


def explained(exception: ExceptionInfo, warnings: str) -> ExceptionInfo:
    """The exception with what the checker had wondered about before the statement ran, which often
    explains it.
    """
    if not warnings:
        return exception
    told = exception.trace_summary.rstrip() or f"{exception.type}: {exception.message}"
    return exception.model_copy(
        update={"trace_summary": f"{told}\n\nThe type checker had noted:\n{warnings}"}
    )


def _refuses(
    diagnostic: str, declared: frozenset[str], handle_types: frozenset[str], source: str
) -> bool:
    match = _RULE.match(diagnostic)
    if match is None:
        return False
    rule, text = match[2], match[3]
    if rule in _CERTAIN:
        # What may be undefined and is expected to be, is no mistake.
        return rule != "unresolved-reference" or "NameError" not in source
    if rule in _OF_CALLS:
        called = _CALLED.search(text)
        if called is None:
            return False
        owner, _, _ = called[1].partition(".")
        return owner in (handle_types if "." in called[1] else declared) and not _unsure(text)
    if rule in _OF_HANDLES:
        handle = _HANDLE.search(text)
        return handle is not None and handle[1] in handle_types
    return False


def _with_remedy(diagnostic: str) -> str:
    """With what to write in place of a builtin that statements do not have."""
    named = _UNKNOWN.search(diagnostic)
    instead = phrases.instead_of(named[1]) if named else ""
    return f"{diagnostic}: {instead}" if instead else diagnostic


def _of_supplied(diagnostic: str) -> bool:
    """Whether it is about a module that the checker does not know and a statement has."""
    named = _IMPORTED.search(diagnostic)
    return named is not None and named[1] in supplied.MODULES


def _unsure(text: str) -> bool:
    """Whether the argument has one of several types: the one that it has when it is passed may be a
    right one.
    """
    named = _FOUND.search(text)
    return named is not None and " | " in named[1]
