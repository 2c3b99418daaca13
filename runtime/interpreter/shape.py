"""What the tree of a statement tells of it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeGuard


def is_one(arguments: Sequence[ast.expr]) -> bool:
    """Whether a call has one argument, and not several of a starred one."""
    return len(arguments) == 1 and not isinstance(arguments[0], ast.Starred)


def bound(nodes: Sequence[ast.AST]) -> set[str]:
    """The names that a statement binds somewhere, but for those of its functions, classes and
    caught exceptions, and what patterns match: what they are there is its own.
    """
    return {binds(node) for node in nodes if isinstance(node, ast.Name | ast.arg)}


def only_looped(nodes: Sequence[ast.AST], names: frozenset[str]) -> frozenset[str]:
    """Those of ``names`` that a statement binds as variables of loops alone, and does not call."""
    if not names:
        return names
    loops = [node.target for node in nodes if isinstance(node, ast.For | ast.comprehension)]
    looped = {id(one) for target in loops for one in ast.walk(target)}
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    others = {function.id for function in calls if isinstance(function, ast.Name)}
    others.update(binds(node) for node in nodes if id(node) not in looped)
    return names - others


_QUIET = (
    *(ast.Attribute, ast.Constant, ast.Name, ast.Subscript, ast.UnaryOp),
    *(ast.expr_context, ast.unaryop),
)


def is_quiet(node: ast.expr) -> bool:
    """Whether an expression can be read twice: nothing but names, attributes and items."""
    return all(isinstance(part, _QUIET) for part in ast.walk(node))


_NAMING = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
    *(ast.ExceptHandler, ast.MatchAs, ast.MatchStar),
)


def binds(node: ast.AST) -> str:
    """The name that a part of a statement binds otherwise than by an import; empty if none."""
    if isinstance(node, ast.Name):
        return "" if isinstance(node.ctx, ast.Load) else node.id
    if isinstance(node, ast.arg):
        return node.arg
    return (node.name or "") if isinstance(node, _NAMING) else ""


def renames(nodes: Sequence[ast.AST], module: str) -> bool:
    """Whether a statement imports a module, or something of it, by another name than its own."""
    return any(
        (isinstance(node, ast.ImportFrom) and node.module == module)
        or (
            isinstance(node, ast.Import)
            and any(one.name == module and one.asname not in (None, module) for one in node.names)
        )
        for node in nodes
    )


def tells_unequal(item: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    """Whether it is a method ``__ne__`` that does more than to deny something."""
    if not isinstance(item, ast.FunctionDef) or item.name != "__ne__":
        return False
    last = item.body[-1]
    denies = (
        isinstance(last, ast.Return)
        and isinstance(last.value, ast.UnaryOp)
        and isinstance(last.value.op, ast.Not)
    )
    return not (denies and len(item.body) <= 2)


def of_the_class(item: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    """Whether a static or class method, which is called on the class."""
    return isinstance(item, ast.FunctionDef) and any(
        isinstance(one, ast.Name) and one.id in ("staticmethod", "classmethod")
        for one in item.decorator_list
    )


def opens(node: ast.AST) -> bool:
    """Whether it is a call of ``open``, a function or a method."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    return (
        function.id == "open"
        if isinstance(function, ast.Name)
        else getattr(function, "attr", "") == "open"
    )


def called_name(node: ast.Call) -> str:
    """The name of the function or the method that is called; empty for another expression."""
    function = node.func
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def is_of_one(node: ast.expr, name: str) -> bool:
    """Whether it is a call of a function with one name, as in ``type(e)``."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == name
        and len(node.args) == 1
        and isinstance(node.args[0], ast.Name)
    )


def names_of(node: ast.expr) -> set[str]:
    """The name that an expression is, or those that a tuple, list or set has."""
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return {part.id for part in parts if isinstance(part, ast.Name)}


def hands_files_on(nodes: Sequence[ast.AST]) -> bool:
    """Whether a file that is opened is an argument of something else than a loop, such as
    enumerate.
    """
    opened: set[str] = set()
    for node in nodes:
        if (
            isinstance(node, ast.withitem)
            and opens(node.context_expr)
            and isinstance(node.optional_vars, ast.Name)
        ):
            opened.add(node.optional_vars.id)
        elif isinstance(node, ast.Assign) and opens(node.value):
            opened |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return any(
        opens(argument) or (isinstance(argument, ast.Name) and argument.id in opened)
        for node in nodes
        if isinstance(node, ast.Call)
        # A view takes an opened file for its path alone.
        and not (isinstance(node.func, ast.Name) and node.func.id == "view")
        for argument in node.args
    )


def named(base: ast.expr) -> str:
    """The name of a base class, also of one with parameters; empty for another expression."""
    if isinstance(base, ast.Name):
        return base.id
    return named(base.value) if isinstance(base, ast.Subscript) else ""
