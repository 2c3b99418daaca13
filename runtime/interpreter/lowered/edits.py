"""What all lowerings share: the text that they edit, and what they know of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from runtime.interpreter.dialect import Dialect
from runtime.interpreter.edited_text import EditedText
from runtime.interpreter.surroundings import Surroundings


class Edits(ast.NodeVisitor):
    """Edits a statement's text as it visits the nodes, and knows which pieces the text needs."""

    def __init__(self, source: str, dialect: Dialect, surroundings: Surroundings) -> None:
        self.source, self.text, self.dialect = source, EditedText(source), dialect
        self.within = surroundings
        self.edit = self.text.edit
        self.writes, self.natural = dialect >= Dialect.WRITES, dialect >= Dialect.NATURAL
        self.faithful, self.alike = dialect >= Dialect.FAITHFUL, dialect >= Dialect.ALIKE
        self.pieces: dict[str, None] = {}
        self._around_nodes: dict[int, tuple[str, str]] = {}

    def visit(self, node: ast.AST) -> None:
        """With what was decided to stand around it."""
        around = self._around_nodes.pop(id(node), None) if self._around_nodes else None
        if around is None or not isinstance(node, ast.expr):
            super().visit(node)
            return
        self.edit(self.text.start(node), self.text.start(node), around[0])
        super().visit(node)
        self.edit(self.text.end(node), self.text.end(node), around[1])

    def need(self, *pieces: str) -> None:
        """Have pieces supplied, in this order, before the text is fed."""
        self.pieces.update(dict.fromkeys(pieces))

    def _around(self, inner: ast.expr, before: str, end: int, after: str) -> None:
        start, close = self.text.operand(inner, end, any_layout=self.dialect >= Dialect.LAID_OUT)
        self.edit(start, start, before)
        self.visit(inner)
        self.edit(close, end, after)

    def _all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)
