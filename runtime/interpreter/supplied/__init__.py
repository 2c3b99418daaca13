"""What the interpreter lacks of the standard library, as *pieces* of its own Python, fed to a
session when a statement needs one.

A piece is a file of ``sources/``: a module (``heapq``), whose names become attributes of one
object, or a support (``_sorted``), whose names all begin with the framework's prefix. Its first
lines may say which pieces it needs, and which names it takes over from the interpreter's own
module. Modules of ``pure.FUNCTIONS`` are made here: each function asks the host, which answers at
once.

Pieces change what a statement computes, so ``VERSION`` is part of the interpreter's name to which a
running job is pinned.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from runtime.base.syntax import tree_of
from runtime.interpreter.supplied import pure

VERSION = 1
"""To be raised by every change of a piece or of what a statement is lowered to, but for one that
runs of before do not get: a piece of its own, and another ``Dialect``.
"""

PREFIX = "holdfast_"
BUILT_IN = f"{PREFIX}b_"
"""Before the name of a builtin: what a piece uses, since a statement may bind the builtin's
name.
"""

BUILT_INS = "_builtins"
_SOURCES = {
    path.stem: path.read_text()
    # Sorted: what a directory lists first differs between machines.
    for path in sorted((Path(__file__).parent / "sources").glob("*.monty"))
}
_MODULE = "_module"
_NEEDS = re.compile(r"^# needs: (.*)$", re.MULTILINE)
_NATIVE = re.compile(r"^# native: (.*)$", re.MULTILINE)

MODULES = frozenset(name for name in _SOURCES if not name.startswith("_")) | pure.FUNCTIONS.keys()
"""Modules that are supplied, whole or in part."""


def variable(module: str) -> str:
    """The name under which a supplied module stands in a session."""
    return f"{PREFIX}mod_{module.replace('.', '_')}"


@cache
def natives(module: str) -> frozenset[str]:
    """The names that the interpreter's own module of that name has."""
    match = _NATIVE.search(_SOURCES.get(module, ""))
    return frozenset(match[1].split()) if match else frozenset()


@cache
def names(module: str) -> frozenset[str]:
    """The public names that a supplied module has."""
    if module in pure.FUNCTIONS:
        return frozenset([*pure.FUNCTIONS[module], *pure.CONSTANTS.get(module, ())])
    return frozenset(
        name for name in _top_level(_SOURCES[module]) if not name.startswith("_")
    ) | natives(module)


def closure(pieces: Iterable[str]) -> tuple[str, ...]:
    """The pieces with all that they need, each after what it needs."""
    ordered: list[str] = []
    for piece in pieces:
        for needed in (*closure(_needs(piece)), piece):
            if needed not in ordered:
                ordered.append(needed)
    return tuple(ordered)


@cache
def source(piece: str) -> str:
    """The text to feed for a piece, once those before it in ``closure`` are there."""
    # This is the piece that gives builtins those names.
    if piece == BUILT_INS:
        return _SOURCES[piece]
    if piece.startswith("_"):
        return _with_built_ins(_SOURCES[piece])
    body = _pure_module(piece) if piece in pure.FUNCTIONS else _SOURCES[piece]
    exported = [name for name in _top_level(body) if not name.startswith("_")]
    maker = f"{variable(piece)}_made"
    lines = [f"def {maker}():"]
    native = sorted(natives(piece))
    if native:
        lines.append(f"    import {piece} as native")
    lines += [f"    {line}" if line else "" for line in body.splitlines()]
    lines += [f"    made = {PREFIX}module()", f"    made.__name__ = {piece!r}"]
    lines += [f"    made.{name} = native.{name}" for name in native]
    lines += [f"    made.{name} = {name}" for name in exported]
    lines += ["    return made", f"{variable(piece)} = {maker}()", ""]
    return _with_built_ins("\n".join(lines))


def _with_built_ins(text: str) -> str:
    """A piece with the builtins under the names that no statement binds."""
    tree = tree_of(text)
    kept = set(re.findall(rf"^{BUILT_IN}(\w+) =", _SOURCES[BUILT_INS], re.MULTILINE))
    used: list[tuple[int, int]] = []
    # A name that the piece binds itself is the piece's own.
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            kept.discard(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            kept.discard(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            kept.discard(node.id)
    lines = text.split("\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in kept:
            used.append((node.lineno - 1, node.col_offset))
    # From the end on, so that an insertion moves no place that is still to come.
    for line, column in sorted(used, reverse=True):
        lines[line] = lines[line][:column] + BUILT_IN + lines[line][column:]
    return "\n".join(lines)


@cache
def own_lines() -> frozenset[str]:
    """The lines of all pieces, without their indentation: a traceback's frame that shows one is not
    the statement's.
    """
    pieces = (*_SOURCES, *pure.FUNCTIONS)
    return frozenset(
        line.strip() for piece in pieces for line in source(piece).splitlines() if line.strip()
    )


def _needs(piece: str) -> tuple[str, ...]:
    match = _NEEDS.search(_SOURCES.get(piece, ""))
    needed = tuple(match[1].split()) if match else ()
    if piece == BUILT_INS:
        return ()
    if piece.startswith("_"):
        return (BUILT_INS, *needed)
    return (_MODULE, "_pure", *needed) if piece in pure.FUNCTIONS else (_MODULE, *needed)


def _pure_module(module: str) -> str:
    return "".join(
        f"def {name}(*args, **kwargs):\n    return {PREFIX}pure({module + '.' + name!r},"
        f" *[{PREFIX}plainly(a) for a in args], **kwargs)\n"
        for name in pure.FUNCTIONS[module]
    ) + "".join(f"{name} = {value}\n" for name, value in pure.CONSTANTS.get(module, {}).items())


def _top_level(text: str) -> list[str]:
    defined: list[str] = []
    for node in tree_of(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.append(node.name)
        elif isinstance(node, ast.Assign):
            flat = [one for target in node.targets for one in getattr(target, "elts", [target])]
            defined += [target.id for target in flat if isinstance(target, ast.Name)]
    return defined
