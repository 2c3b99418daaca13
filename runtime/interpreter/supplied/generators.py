"""Which generator functions can be run to their end when they are called: the interpreter has no
``yield``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

COLLECTED = "holdfast_collected"
"""The list in such a function that takes what it yields."""


def can_collect(function: ast.FunctionDef) -> bool:
    """Whether ``function`` yields, uses nothing that is sent to it, and has no loop without an end
    around a ``yield``.
    """
    yields = [node for node in _own(function) if isinstance(node, ast.Yield | ast.YieldFrom)]
    if not yields:
        return False
    # A yield whose value is used waits for what is sent to it.
    told = {id(node.value) for node in _own(function) if isinstance(node, ast.Expr)}
    if any(id(node) not in told for node in yields):
        return False
    return not any(isinstance(node, ast.While) and _endless(node) for node in _own(function))


def _endless(loop: ast.While) -> bool:
    always = isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    inside = list(_own(loop))
    ends = any(isinstance(node, ast.Break | ast.Return | ast.Raise) for node in inside)
    return (
        always and not ends and any(isinstance(node, ast.Yield | ast.YieldFrom) for node in inside)
    )


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """What is inside a node and not inside a function of its own."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(
            child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
        ):
            yield from _own(child)
