"""A text that is edited at the nodes of its syntax tree, and knows where its lines are from."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

_COMMENT = re.compile("#.*")
_BLANK = r"(?:\s|\\\n|#.*\n)*"
"""What may stand between a parenthesis and what is in it."""
_FAR = 10_000
"""Characters before an operand in which its own parentheses are looked for."""


@dataclass
class EditedText:
    """``source``, whose nodes are found by line and column, the latter in bytes of UTF-8; and the
    edits (start, end, text) of it, in the order in which they apply where they meet.
    """

    source: str
    _starts: list[int] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)
    _edits: list[tuple[int, int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        at = 0
        # The parser knows no line ends but these two.
        # A blank in place of a return that is dropped keeps all places behind it.
        for line in self.source.replace("\r\n", " \n").replace("\r", "\n").split("\n"):
            self._starts.append(at)
            self._lines.append(line)
            at += len(line) + 1

    def at(self, line: int, column: int) -> int:
        """Where a column of a line is, from 1 and 0."""
        text = self._lines[line - 1]
        return self._starts[line - 1] + (
            column if text.isascii() else len(text.encode()[:column].decode())
        )

    def start(self, node: ast.expr | ast.stmt) -> int:
        """Where a node begins."""
        return self.at(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        """Where a node ends."""
        return self.at(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)

    def line_start(self, line: int) -> int:
        """Where a line begins."""
        return self._starts[line - 1]

    def indent(self, node: ast.stmt) -> str:
        """What stands before the line of a node."""
        line = self._lines[node.lineno - 1]
        return line[: len(line) - len(line.lstrip())]

    def operand(self, inner: ast.expr, end: int, *, any_layout: bool) -> tuple[int, int]:
        """Where an operand begins and ends, the parentheses included that it has of its own before
        ``end``; without ``any_layout`` those alone that stand right before it, as for the first
        dialects.
        """
        start, at = self.start(inner), self.end(inner)
        if not any_layout:
            while (
                start > 0 and self.source[start - 1] == "(" and self._opens(start - 1, inner, end)
            ):
                start -= 1
            closing = self.source.rfind(")", at, end)
            return start, at if closing < 0 else closing + 1
        # No text stands there, so what # begins is a comment.
        behind = _COMMENT.sub(lambda comment: " " * len(comment[0]), self.source[at:end])
        if not (closed := behind.count(")")):
            return start, at
        far = max(0, start - _FAR)
        opened = re.search(f"(?:\\({_BLANK}){{{closed}}}\\Z", self.source[far:start])
        return (far + opened.start() if opened else start), at + behind.rindex(")") + 1

    def _opens(self, at: int, inner: ast.expr, end: int) -> bool:
        behind, before = self.source[self.end(inner) : end], self.source[at + 1 : self.start(inner)]
        return behind.count(")") > before.count("(")

    @property
    def is_edited(self) -> bool:
        """Whether there is any edit."""
        return bool(self._edits)

    def edit(self, start: int, end: int, text: str) -> None:
        """Put ``text`` in the place of what stands between; behind earlier edits of that start."""
        self._edits.append((start, end, text))

    def edit_before(self, at: int, text: str) -> None:
        """Put ``text`` before all edits that begin there."""
        self._edits.insert(0, (at, at, text))

    def result(self) -> tuple[str, tuple[int, ...]]:
        """The edited text, and of each of its lines the one of ``source`` that it came from."""
        out: list[str] = []
        lines: list[int] = [1]
        at, line = 0, 1

        def add(text: str, *, own: bool) -> None:
            nonlocal line
            out.append(text)
            for _ in range(text.count("\n")):
                line += own
                lines.append(line)

        # Sorted by their starts alone: where edits meet, the order in which they were made counts.
        for start, end, text in sorted(self._edits, key=lambda edit: edit[0]):
            add(self.source[at:start], own=True)
            add(text, own=False)
            # Lines of the source that an edit takes away are passed all the same.
            line += self.source.count("\n", start, end)
            at = max(at, end)
        add(self.source[at:], own=True)
        return "".join(out), tuple(lines)
