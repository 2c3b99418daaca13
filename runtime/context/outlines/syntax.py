"""Parsing with tree-sitter, within bounds that do not depend on the clock: equal text, equal
tree.
"""

from __future__ import annotations

from tree_sitter import Node, Parser, Tree

from runtime.context.outlines.languages import Grammar

MAX_PROGRESS = 16_000
"""Parsing is given up after so many calls of its progress function, one for some hundred
operations: text that is not in the language can take a hundred times as long as text that is.
"""

_PIECE = 64 * 1024


def parsed(source: bytes, grammar: Grammar) -> Tree | None:
    """The syntax tree, with error nodes where there are errors; None if it takes too much work."""
    calls = 0

    def too_much(_offset: int, _has_error: bool) -> bool:
        # Each call gives other threads a chance, too: the parser itself holds the interpreter lock.
        nonlocal calls
        calls += 1
        return calls > MAX_PROGRESS

    try:
        return Parser(grammar.language).parse(
            lambda offset, _point: source[offset : offset + _PIECE], progress_callback=too_much
        )
    except ValueError:
        return None


def text_between(source: bytes, start: int, stop: int) -> str:
    """The text of some bytes of the source."""
    return source[start:stop].decode("utf-8", "replace")


def line_of(node: Node) -> int:
    """The 0-based line on which a node starts."""
    return int(node.start_point[0])
