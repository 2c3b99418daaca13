"""The entries of an outline, and their bounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MAX_ITEMS = 5_000
"""The most items of one outline."""

MAX_LEVEL = 4
"""Items deeper than this stand at this depth."""

ITEM_CHARS = 200
"""The most characters of one item's text or doc."""

VALUE_CHARS = 60
"""The most characters of a value in an item."""


@dataclass(frozen=True)
class Item:
    """One entry: its 0-based line, its depth from 0, its text on one line, and the first line of
    its documentation.
    """

    line: int
    level: int
    text: str
    doc: str = ""


def first(items: Iterable[Item]) -> tuple[Item, ...]:
    """The first items, within the bounds."""
    taken: list[Item] = []
    for item in items:
        taken.append(
            Item(item.line, min(item.level, MAX_LEVEL), one_line(item.text), one_line(item.doc))
        )
        if len(taken) == MAX_ITEMS:
            break
    return tuple(taken)


def one_line(text: str, most: int = ITEM_CHARS) -> str:
    """``text`` without line breaks and runs of spaces, cut to ``most`` characters."""
    # Only so much is looked at: a line may be the whole of a large file.
    flat = " ".join(text[: 4 * most].split())
    return flat if len(flat) <= most and len(text) <= 4 * most else flat[: most - 1] + "…"
