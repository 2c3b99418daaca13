"""Outlines of data: the keys of JSON, YAML and TOML with the shape of what they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from runtime.context.outlines.items import VALUE_CHARS, Item, one_line
from runtime.context.outlines.languages import DataLanguage
from runtime.context.outlines.syntax import line_of, parsed, text_between

KEY_LEVELS = 3
"""Keys deeper than that are not listed: they are counted with what holds them."""

MOST_COLUMNS = 100
"""Columns of YAML in which something may begin that holds more. Its grammar's own code has room for
253 levels, of which two may begin in one column, and writes beyond that into other memory: the
process dies.
"""

# What may stand before something on its line: marks of lists, keys and values, names, tags.
_BEFORE = re.compile(r"[ \t]*(?:(?:---|[-?:]|[&!*]\S*)[ \t]+)*")
_MARK = re.compile(r"\S+")


def data(text: str, language: DataLanguage) -> Iterator[Item]:
    """The keys in ``text``, as far as it can be parsed."""
    if language.by_columns and _has_many_columns(text):
        return
    source = text.encode("utf-8", "replace")
    tree = parsed(source, language.grammar)
    if tree is not None:
        yield from _Reader(source, language).within(tree.root_node, 0)


def _has_many_columns(text: str) -> bool:
    """Whether things begin in more columns than ``MOST_COLUMNS``."""
    columns = set[int]()
    for line in text.split("\n"):
        before = _BEFORE.match(line)
        # It matches nothing, too.
        assert before is not None
        columns.update(mark.start() for mark in _MARK.finditer(line, 0, before.end()))
        columns.add(before.end())
        if len(columns) > MOST_COLUMNS:
            return True
    return False


@dataclass(frozen=True)
class _Reader:
    """Reads one tree."""

    source: bytes
    language: DataLanguage

    def within(self, node: Node, level: int) -> Iterator[Item]:
        """What stands in ``node``, which is read as if it were not there."""
        for child in node.named_children:
            if child.type in self.language.pairs:
                yield from self._pair(child, level)
            elif child.type in self.language.tables:
                yield from self._table(child)
            elif child.type in self.language.lists and level == 0:
                yield from self._list(child)
            elif (
                child.type in self.language.mappings
                or child.type in self.language.open
                or child.type == "ERROR"
            ):
                yield from self.within(child, level)

    def _pair(self, node: Node, level: int) -> Iterator[Item]:
        if not node.named_children:
            return
        # TOML's grammar names no fields: there the first child is the key.
        key = node.child_by_field_name("key") or node.named_children[0]
        value = node.child_by_field_name("value") or node.named_children[-1]
        value = self._bare(value)
        name = one_line(self._text(key).strip("\"'"), VALUE_CHARS)
        # A key without a value is its own last child.
        yield Item(
            line_of(node), level, f"{name}: {self._shape(value)}" if value.id != key.id else name
        )
        if value.type in self.language.mappings and level + 1 < KEY_LEVELS:
            yield from self.within(value, level + 1)

    def _table(self, node: Node) -> Iterator[Item]:
        """A section of TOML."""
        head = text_between(self.source, node.start_byte, node.end_byte).split("\n", 1)[0]
        yield Item(line_of(node), 0, head)
        yield from self.within(node, 1)

    def _list(self, node: Node) -> Iterator[Item]:
        """A list that is the whole document: how long it is, and the keys of its first member."""
        yield Item(line_of(node), 0, self._shape(node))
        members = [self._bare(child) for child in node.named_children[:1]]
        if members and members[0].type in self.language.mappings:
            yield from self.within(members[0], 1)

    def _shape(self, value: Node) -> str:
        if value.type in self.language.mappings:
            pairs = [child for child in value.named_children if child.type in self.language.pairs]
            return f"object with {len(pairs):,} {'key' if len(pairs) == 1 else 'keys'}"
        if value.type in self.language.lists:
            members = [child for child in value.named_children if child.type != "comment"]
            of = bool(members) and all(
                self._bare(child).type in self.language.mappings for child in members
            )
            kind = (" objects" if len(members) > 1 else " object") if of else ""
            return f"array of {len(members):,}{kind}"
        return one_line(self._text(value), VALUE_CHARS)

    def _bare(self, node: Node) -> Node:
        """A value without the nodes around it that mean nothing here."""
        # Bounded: a tree is as deep as whoever wrote the file likes.
        for _ in range(8):
            if node.type not in self.language.open or not node.named_children:
                break
            node = node.named_children[-1]
        return node

    def _text(self, node: Node) -> str:
        return text_between(
            self.source, node.start_byte, min(node.end_byte, node.start_byte + 4_000)
        )
