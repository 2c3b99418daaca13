"""What is tested, where objects of the statement's own classes say whether they are true."""

from __future__ import annotations

import ast
from itertools import pairwise

from runtime.interpreter import stand_ins
from runtime.interpreter.dialect import Dialect
from runtime.interpreter.lowered.edits import Edits
from runtime.interpreter.surroundings import Surroundings

_OF_ITS_PLACE = (ast.Await, ast.NamedExpr, ast.Yield, ast.YieldFrom)
"""Expressions that mean something else in a function of their own."""


class Conditions(Edits):
    """Tests, and ``and`` and ``or``, which the interpreter decides without asking an object."""

    def __init__(self, source: str, dialect: Dialect, surroundings: Surroundings) -> None:
        super().__init__(source, dialect, surroundings)
        self._only_tested: set[int] = set()
        """Those of which nothing but their truth is wanted."""

    def visit_If(self, node: ast.If | ast.IfExp | ast.While | ast.Assert) -> None:
        """What is tested may be an object of a class that says itself whether it is true."""
        self._tested(node.test)
        self.generic_visit(node)

    visit_IfExp = visit_While = visit_Assert = visit_If

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """As ``if``, behind ``not``."""
        if isinstance(node.op, ast.Not):
            self._tested(node.operand)
        self.generic_visit(node)

    def visit_match_case(self, node: ast.match_case) -> None:
        """As ``if``, of a guard."""
        if node.guard is not None:
            self._tested(node.guard)
        self.generic_visit(node)

    def _tested(self, *tests: ast.expr) -> None:
        for test in tests if self.within.truths else ():
            if isinstance(test, ast.BoolOp):
                self._only_tested.add(id(test))
                self._tested(*test.values)
            elif isinstance(test, stand_ins.OBJECTS):
                self.need("_truth")
                self._around_nodes[id(test)] = ("holdfast_truth(", ")")

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """``stack or other``, whose value is the first if that is true."""
        pairs = list(pairwise(node.values))
        joints = [self.source[self.text.end(a) : self.text.start(b)] for a, b in pairs]
        if (
            not (self.within.truths and self.alike)
            or id(node) in self._only_tested
            or not any(
                isinstance(one, (*stand_ins.OBJECTS, ast.BoolOp)) for one in node.values[:-1]
            )
            # What would be another's in a function of its own, or hide the word.
            or any(
                isinstance(part, _OF_ITS_PLACE) for one in node.values[1:] for part in ast.walk(one)
            )
            or any("#" in joint for joint in joints)
        ):
            self.generic_visit(node)
            return
        self.need("_values")
        word = "or" if isinstance(node.op, ast.Or) else "and"
        self.edit(self.text.start(node), self.text.start(node), f"holdfast_{word}(")
        self.visit(node.values[0])
        for (before, after), joint in zip(pairs, joints, strict=True):
            at = self.text.end(before) + joint.index(word)
            self.edit(at, at + len(word), ", lambda:")
            self.visit(after)
        self.edit(self.text.end(node), self.text.end(node), ")")
