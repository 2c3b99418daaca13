"""Which entries of an outline matter most: those that the source itself uses most, and those
nearest to a position.

In the manner of aider's map of a repository, within one source. Names that begin with an underscore
count a tenth, classes and what else has members more, and a member never without what it belongs
to. Headings, keys and columns are not used by name: of them the upper levels go first, and of one
level the first. All integers: equal text, equal order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import isqrt

from runtime.context.outlines import Item

SHORT_CHARS = 64
"""Characters of a signature where the whole of it has no room."""

NEAR_LINES = 50
"""Lines from the position at which nearness counts half."""

_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_ENDS_NAME = re.compile(r"[(:=<{]|\s(?:extends|implements|for|where|is|AS|as)\s")
_RECEIVER = re.compile(r"func \([^()]{0,80}\) ")
_KEYWORDS = frozenset({"struct", "interface", "class", "function", "object", "type", "enum"})
_MOST_USES = 10_000


def ranked(items: Sequence[Item], text: str, *, by_use: bool, near: int | None) -> list[int]:
    """The indices of ``items``, the most telling first, each after the one that it belongs to.

    ``by_use``: the text names its entries elsewhere, as code does. ``near`` is the 0-based line of
    the position, if one is set.
    """
    parents = _parents(items)
    scores = (
        _by_use(items, text, parents)
        if by_use
        else [_MOST_USES // (1 + item.level) for item in items]
    )
    if near is not None:
        scores = [
            _nearer(score, abs(item.line - near)) for score, item in zip(scores, items, strict=True)
        ]
    at = _holding(items, near)
    order: dict[int, None] = {}
    # What holds the position first, whatever its score; of equal scores the one further up.
    for index in sorted(range(len(items)), key=lambda i: (i != at, -scores[i], i)):
        chain = [index]
        while (parent := parents[chain[-1]]) is not None:
            chain.append(parent)
        order.update(dict.fromkeys(reversed(chain)))
    return list(order)


def short(text: str) -> str:
    """A signature, cut between two of its parameters."""
    if len(text) <= SHORT_CHARS:
        return text
    head, opening, parameters = text[:SHORT_CHARS].partition("(")
    if not opening:
        return f"{head}…"
    # The last of them may have been cut in its middle.
    whole = [*parameters.split(",")[:-1], " …"]
    return f"{head}({','.join(whole).lstrip()})"


def name_of(text: str) -> str:
    """What an entry defines, by its signature in any language; ``""`` if that is not to be seen."""
    head = _ENDS_NAME.split(_RECEIVER.sub("", text), maxsplit=1)[0]
    words = [word for word in _WORD.findall(head) if word not in _KEYWORDS]
    return words[-1] if words else ""


def _nearer(score: int, lines: int) -> int:
    """A score, up to nine times as much the fewer lines lie between."""
    return score + score * 8 * NEAR_LINES // (NEAR_LINES + lines)


def _by_use(items: Sequence[Item], text: str, parents: Sequence[int | None]) -> list[int]:
    names = [name_of(item.text) for item in items]
    words, defined, holding = Counter(_WORD.findall(text)), Counter(names), set(parents)
    scores: list[int] = []
    for index, name in enumerate(names):
        # Uses are shared among those of one name, for nobody knows which of them is meant.
        uses = min(max(words[name] - defined[name], 0), _MOST_USES) // defined[name]
        # By the root: a hundred uses are not a hundred times as telling as one.
        score = 100 * isqrt(100 * (1 + uses)) * _weight(items[index], index in holding)
        scores.append(score // 10 if name.startswith("_") else score)
    return scores


def _weight(item: Item, holds_members: bool) -> int:
    """Classes and what else has members before functions, these before variables."""
    if holds_members:
        return 8
    return 1 if " = " in item.text.partition("(")[0] else 2


def _parents(items: Sequence[Item]) -> list[int | None]:
    """For each item the one whose member it is: the last before it that is less deep."""
    above: list[int] = []
    parents: list[int | None] = []
    for index, item in enumerate(items):
        while above and items[above[-1]].level >= item.level:
            above.pop()
        parents.append(above[-1] if above else None)
        above.append(index)
    return parents


def _holding(items: Sequence[Item], near: int | None) -> int | None:
    """The last item that begins at or before the position."""
    if near is None:
        return None
    before = [index for index, item in enumerate(items) if item.line <= near]
    return max(before, key=lambda index: (items[index].line, index), default=None)
