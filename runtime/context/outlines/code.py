"""Outlines of source code: its definitions, each with its signature as written, and the first line
of its documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from runtime.context.outlines.items import VALUE_CHARS, Item, one_line
from runtime.context.outlines.languages import CodeLanguage
from runtime.context.outlines.syntax import line_of, parsed, text_between

MAX_DEPTH = 24
"""Definitions inside so many others and statements are not looked for."""

_COMMENT = re.compile(r"^(?:/\*+!?|//[/!]?|#+!?|\*+|-{2,}(?:\[\[)?)?\s*(.*?)\s*(?:\*+/)?$")
_QUOTES = re.compile(r"^[a-zA-Z]{0,2}(\"\"\"|'''|\"|')")


def code(text: str, language: CodeLanguage) -> Iterator[Item]:
    """The definitions in ``text``, as far as it can be parsed."""
    # A lone surrogate has no UTF-8, and nothing here may raise.
    source = text.encode("utf-8", "replace")
    tree = parsed(source, language.grammar)
    if tree is not None:
        reader = _Reader(source, language)
        yield from reader.module(tree.root_node)


@dataclass(frozen=True)
class _Reader:
    """Reads one tree."""

    source: bytes
    language: CodeLanguage

    def module(self, root: Node) -> Iterator[Item]:
        """The whole source."""
        doc = self._docstring(root)
        if doc:
            yield Item(0, 0, '"""module"""', doc)
        yield from self._children(root, 0, 0)

    def _children(self, parent: Node, level: int, depth: int) -> Iterator[Item]:
        if depth > MAX_DEPTH:
            return
        nodes = parent.named_children
        before = -1
        for number, node in enumerate(nodes):
            yield from self._node(node, node, level, depth, self._comment(nodes, before, number))
            if node.type != "attribute_item":  # Rust's stand between a definition and its comment
                before = number

    def _node(
        self, node: Node, start: Node, level: int, depth: int, comment: str
    ) -> Iterator[Item]:
        language, kind = self.language, node.type
        if kind in language.wrappers:
            inner = [child for child in node.named_children if child.type not in language.skipped]
            for child in inner:
                yield from self._node(child, start, level, depth + 1, comment)
        elif kind in language.definitions:
            yield from self._definition(node, start, level, depth, comment)
        elif kind in language.leaves or (kind in language.outer and level == 0):
            yield from self._leaf(node, start, level, depth, comment)
        elif kind == "expression_statement" and level <= 1 and self.language.is_python:
            yield from self._assignment(node, level)
        # What a parser could not read may hold definitions that it can.
        elif kind in language.open or kind == "ERROR":
            yield from self._children(node, level, depth + 1)

    def _definition(
        self, node: Node, start: Node, level: int, depth: int, comment: str
    ) -> Iterator[Item]:
        body = self._body(node)
        if body is None and node.type.endswith("_specifier"):
            return  # ``struct point p;`` names a type, and defines none
        doc = comment
        if self.language.is_python and body is not None:
            doc = self._docstring(body)
        yield Item(self._line(start), level, self._head(node, start, body), doc)
        if body is not None and node.type not in self.language.closed:
            yield from self._children(body, level + 1, depth + 1)

    def _leaf(
        self, node: Node, start: Node, level: int, depth: int, comment: str
    ) -> Iterator[Item]:
        body = self._body(node)
        if body is not None:
            # A declaration whose value or type has a body: a function in a variable, a struct.
            yield Item(self._line(start), level, self._head(node, start, body), comment)
            if body.type not in {"statement_block", "compound_statement", "block"}:
                yield from self._children(body, level + 1, depth + 1)
            return
        begin = self._start(start)
        text = text_between(self.source, begin, min(node.end_byte, begin + 4_000))
        yield Item(self._line(start), level, one_line(text, 2 * VALUE_CHARS).rstrip(";,"), comment)

    def _assignment(self, node: Node, level: int) -> Iterator[Item]:
        """A module's or a class's variable in Python."""
        assignment = node.named_children[0] if node.named_children else None
        if assignment is None or assignment.type != "assignment":
            return
        left, kind = assignment.child_by_field_name("left"), assignment.child_by_field_name("type")
        if left is None or left.type != "identifier" or (level > 0 and kind is None):
            return
        text = text_between(
            self.source, node.start_byte, min(node.end_byte, node.start_byte + 4_000)
        )
        yield Item(line_of(node), level, one_line(text, VALUE_CHARS))

    def _body(self, node: Node, depth: int = 0) -> Node | None:
        """Where a definition's body is: its own, or that of the type or the value which it
        names.
        """
        for field in ("body", "accessors"):
            body = node.child_by_field_name(field)
            if body is not None and body.type != "ordered_field_declaration_list":
                return body
        if depth > 3:
            return None
        # Few children, few levels: a tree is as wide and as deep as whoever wrote the file likes.
        for child in node.named_children[:8]:
            if child.type in self.language.bodies:
                return child
            if (
                child.type in self.language.carriers
                and (body := self._body(child, depth + 1)) is not None
            ):
                return body
        # Go's interfaces have their methods in no body of their own.
        return node if node.type == "interface_type" and node.named_children else None

    def _head(self, node: Node, start: Node, body: Node | None) -> str:
        """The signature as written: all before the body; without one, the first line."""
        begin = self._start(start)
        stop = node.end_byte if body is None else body.start_byte
        if body is not None and body.type == "interface_type":
            return text_between(self.source, begin, body.start_byte) + "interface"
        stop = min(
            [stop, *(child.start_byte for child in node.named_children if child.type == "comment")]
        )
        text = text_between(self.source, begin, min(stop, begin + 4_000))
        if body is None and not text.rstrip().endswith((";", ")", "}")):
            text = text.split("\n", 1)[0]
        flat = one_line(text).rstrip(" :;{").removesuffix("=>").rstrip(" =")
        # Of a list of parameters, one a line.
        return flat.replace("( ", "(").replace(", )", ")").replace(" )", ")")

    def _start(self, start: Node) -> int:
        """Where a definition's own text begins: behind its decorators."""
        for child in start.children:
            if child.type not in self.language.skipped:
                return int(child.start_byte)
        return int(start.start_byte)

    def _line(self, start: Node) -> int:
        return line_of(start) + self.source.count(b"\n", start.start_byte, self._start(start))

    def _comment(self, nodes: Sequence[Node], before: int, number: int) -> str:
        """The first line of the comment that stands right above the definition of that number among
        its siblings; the node ``before`` it may be one.
        """
        if before < 0 or self.language.is_python or "comment" in nodes[number].type:
            return ""
        last = first = nodes[before]
        if "comment" not in last.type:
            return ""
        # A file may be one comment of a hundred thousand lines. By its place: to find a node's
        # neighbour the parser looks through all before it.
        for above in reversed(nodes[max(before - 50, 0) : before]):
            if "comment" not in above.type or line_of(above) < line_of(first) - 1:
                break
            first = above
        gap = self.source.count(b"\n", last.end_byte - 1, nodes[before + 1].start_byte)
        if gap > 1 or last.end_byte - first.start_byte > 20_000:
            return ""
        for line in text_between(self.source, first.start_byte, last.end_byte).split("\n"):
            match = _COMMENT.match(line.strip()[:400])
            if match and match[1].strip("*/# -="):
                return re.sub(r"</?summary>", "", match[1]).strip()
        return ""

    def _docstring(self, body: Node) -> str:
        if not self.language.is_python:
            return ""
        statement = next((child for child in body.named_children if child.type != "comment"), None)
        inner = (
            statement.named_children[:1]
            if statement is not None and statement.type == "expression_statement"
            else []
        )
        if not inner or inner[0].type != "string":
            return ""
        text = text_between(
            self.source, inner[0].start_byte, min(inner[0].end_byte, inner[0].start_byte + 4_000)
        )
        quotes = _QUOTES.match(text)
        if quotes is None:
            return ""
        return text[quotes.end() :].removesuffix(quotes[1]).strip().split("\n", 1)[0]
