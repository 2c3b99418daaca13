"""Generator functions, which collect what they yield and give an iterator of it."""

from __future__ import annotations

import ast

from runtime.interpreter import supplied
from runtime.interpreter.dialect import Dialect
from runtime.interpreter.lowered.edits import Edits
from runtime.interpreter.supplied import BUILT_IN, generators
from runtime.interpreter.surroundings import Surroundings


class Functions(Edits):
    """Functions, of which it knows whether what stands in them is a generator's."""

    def __init__(self, source: str, dialect: Dialect, surroundings: Surroundings) -> None:
        super().__init__(source, dialect, surroundings)
        self._functions: list[bool] = []
        """Of each function around the node that is visited, whether it collects."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """A generator function collects what it yields, and gives an iterator."""
        self._all(node.decorator_list)
        self.visit(node.args)
        collects = generators.can_collect(node)
        if collects:
            self.need(supplied.BUILT_INS)
        self._functions.append(collects)
        if collects:
            first = node.body[0]
            self._line_before(first, f"{generators.COLLECTED} = []")
        self._all(node.body)
        if collects:
            # A body on its ``def``'s own line goes on there.
            indent = self.text.indent(node.body[0]) if node.body[0].lineno != node.lineno else ""
            joint = f"\n{indent}" if indent else "; "
            at = self.text.end(node.body[-1])
            self.edit(at, at, f"{joint}return {BUILT_IN}iter({generators.COLLECTED})")
        self._functions.pop()

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """A lambda's own ``yield`` is nobody's."""
        self._functions.append(False)
        self.generic_visit(node)
        self._functions.pop()

    def visit_Return(self, node: ast.Return) -> None:
        """The end of a generator."""
        if self._functions and self._functions[-1]:
            self.edit(
                self.text.start(node),
                self.text.end(node),
                f"return {BUILT_IN}iter({generators.COLLECTED})",
            )
            return
        self.generic_visit(node)

    def visit_Yield(self, node: ast.Yield) -> None:
        """One more of what a generator gives."""
        self._yields(node, node.value, "append")

    def visit_YieldFrom(self, node: ast.YieldFrom) -> None:
        """All of another iterable."""
        self._yields(node, node.value, "extend")

    def _yields(self, node: ast.Yield | ast.YieldFrom, value: ast.expr | None, method: str) -> None:
        if not (self._functions and self._functions[-1]):
            return
        if value is None:
            self.edit(
                self.text.start(node), self.text.end(node), f"{generators.COLLECTED}.{method}(None)"
            )
            return
        # ``yield a, b`` is one tuple, which needs parentheses as an argument.
        self.edit(
            self.text.start(node), self.text.start(value), f"{generators.COLLECTED}.{method}(("
        )
        self.visit(value)
        self.edit(self.text.end(value), self.text.end(node), "))")

    def _line_before(self, node: ast.stmt, text: str) -> None:
        at = self.text.start(node)
        self.edit(
            at,
            at,
            f"{text}; " if self.text.indent(node) == "" else f"{text}\n{self.text.indent(node)}",
        )
