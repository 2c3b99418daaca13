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
            self._collect_in(node)
        else:
            self._all(node.body)
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

    def _collect_in(self, node: ast.FunctionDef) -> None:
        """Visit the body of a function that collects: what it gives is made first, and given at
        last.
        """
        first, last = node.body[0], node.body[-1]
        begin = f"{generators.COLLECTED} = []"
        end = f"return {BUILT_IN}iter({generators.COLLECTED})"
        at, behind = self.text.start(first), self.text.end(last)
        if self.dialect < Dialect.ON_ONE_LINE:
            indent = self.text.indent(first)
            joint = f"\n{indent}" if indent else "; "
            self.edit(at, at, begin + joint)
            self._all(node.body)
            self.edit(behind, behind, ("; " if first.lineno == node.lineno else joint) + end)
            return
        # What decorates a function belongs to it.
        if decorators := getattr(first, "decorator_list", ()):
            at = self.source.rindex("@", 0, self.text.start(decorators[0]))
        self._all(node.body)
        # A body on the line of its ``def`` goes on there.
        before = self.source[:at].rpartition("\n")[2]
        joint = "; " if before.strip() else f"\n{before}"
        # Before what is put there for the first statement.
        self.text.edit_before(at, begin + joint)
        self.edit(behind, behind, joint + end)
