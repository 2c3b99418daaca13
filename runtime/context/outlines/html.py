"""Outlines of pages: the title and the headings, as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import tree_sitter_html
from tree_sitter import Node

from runtime.context.outlines.items import Item, one_line
from runtime.context.outlines.languages import Grammar
from runtime.context.outlines.syntax import line_of, parsed, text_between

_GRAMMAR = Grammar(tree_sitter_html.language)
_LEVELS = {"title": 0} | {f"h{number}": number - 1 for number in range(1, 7)}
_MARKUP = re.compile(r"<[^<>]*>")


def html(text: str) -> Iterator[Item]:
    """The headings that a reader of the page sees; those in comments and scripts are none."""
    source = text.encode("utf-8", "replace")
    tree = parsed(source, _GRAMMAR)
    waiting = [tree.root_node] if tree is not None else []
    while waiting:
        node = waiting.pop()
        level = _LEVELS.get(_tag(source, node)) if node.type == "element" else None
        heading = "" if level is None else one_line(_words(source, node))
        if level is not None and heading:
            yield Item(line_of(node), level, heading)
        else:
            # Reversed: the stack then gives the page's own order.
            waiting.extend(reversed(node.named_children))


def _tag(source: bytes, element: Node) -> str:
    start = element.named_children[0] if element.named_children else element
    name = start.named_children[0] if start.type == "start_tag" and start.named_children else None
    return "" if name is None else text_between(source, name.start_byte, name.end_byte).lower()


def _words(source: bytes, element: Node) -> str:
    """What an element says, without the tags in it; one that is never closed may hold the page."""
    end = min(element.end_byte, element.start_byte + 4_000)
    return unescape(_MARKUP.sub("", text_between(source, element.start_byte, end)))
