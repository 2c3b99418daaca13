"""Calls of ``re`` that have a regular expression: which argument it is, and by which flags it is
read.
"""

from __future__ import annotations

import ast
import re

_FLAGS_AT = {
    "compile": 1,
    "match": 2,
    "search": 2,
    "fullmatch": 2,
    "findall": 2,
    "finditer": 2,
    "split": 3,
    "sub": 4,
    "subn": 4,
}
"""The functions that take one, and where among their arguments the flags stand."""

NUMBERS = {"VERBOSE": "64", "X": "64", "UNICODE": "32", "U": "32"}
"""Flags that the interpreter does not have, as the numbers that Python has for them."""

_KNOWN = frozenset({"A", "ASCII", "DOTALL", "I", "IGNORECASE", "M", "MULTILINE", "S"})

_ASCII = frozenset({"A", "ASCII"})
"""Of these, those that the interpreter takes and passes over."""

_READ_OTHERWISE = re.compile(r"\$|\\[Z<>0-3]|&&|~~|--|\[.*\[|\[\^?\]|\(\?\w*x", re.DOTALL)
"""What an expression must have somewhere to be read otherwise by the interpreter than by Python."""


def expression(call: ast.Call, *, faithful: bool) -> tuple[ast.expr, ast.expr | None] | None:
    """The expression that a call of ``re`` takes, and its flags; None if there is none that needs
    another text. ``faithful``: by the dialect ``FAITHFUL``.
    """
    function = call.func
    if not (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
        and function.attr in _FLAGS_AT
    ):
        return None
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    pattern = call.args[0] if call.args else named.get("pattern")
    at = _FLAGS_AT[function.attr]
    flags = call.args[at] if len(call.args) > at else named.get("flags")
    has = _KNOWN - _ASCII if faithful else _KNOWN
    known = flags is None or all(name in has for name in _names(flags))
    if pattern is None or (known and _is_as_it_is(pattern)):
        return None
    # They are read twice, so nothing may happen when they are.
    if flags is not None and not all(isinstance(node, _QUIET) for node in ast.walk(flags)):
        return None
    return pattern, flags


_QUIET = (ast.Name, ast.Attribute, ast.BinOp, ast.BitOr, ast.Load, ast.Constant)


def _names(flags: ast.expr) -> list[str]:
    """The names of flags of ``re`` that are joined; an empty one for anything else."""
    if isinstance(flags, ast.BinOp):
        return [*_names(flags.left), *_names(flags.right)]
    of_re = isinstance(flags, ast.Attribute) and isinstance(flags.value, ast.Name)
    return [flags.attr] if of_re and isinstance(flags, ast.Attribute) else [""]


def _is_as_it_is(pattern: ast.expr) -> bool:
    return isinstance(pattern, ast.Constant) and not (
        isinstance(pattern.value, str) and _READ_OTHERWISE.search(pattern.value)
    )
