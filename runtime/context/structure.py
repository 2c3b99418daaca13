"""Level of detail 1: the outline of a source within a token budget, and where a position is set,
the lines near it.

Each outline line is ``LINE: text``, indented by depth, with 0-based lines that ``SetPos`` takes.
Structure comes first: the lines nearby have a quarter of the budget, and none without a budget.
Where the budget does not hold the outline, documentation gives way, then parameters, then the
entries that matter least (``ranking.py``); what is shown stays in the source's order, and the text
says how many are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.context.excerpts import (
    Count,
    Excerpt,
    Position,
    bounded,
    excerpt,
    fitting,
    position,
    suffix_of,
)
from runtime.context.outlines import MAX_ITEMS, Item, Outline, is_code, outline
from runtime.context.ranking import ranked, short
from runtime.context.source_text import SourceText
from runtime.context.sources import ALL_TOKENS

OUTLINED_BYTES = 256 * 1024
"""How much of a source is outlined, from its start.

Parsing takes half a second for dense Python of this size, and whoever wants another outline waits.
"""

PLAIN_TOKENS = 2_000
"""What ``All`` stands for where there is nothing to outline: level 1 is never the whole of a long
text.
"""

NEAR_SHARE = 4
"""The lines nearby have the budget's part by this number."""


def structure(
    source: SourceText,
    path: str,
    pos: str,
    tokens: int,
    count: Count,
    outlined: Sequence[Item] | None = None,
    outline: Outline = outline,
) -> Excerpt:
    """The structure of ``source`` with the lines near ``pos``, of at most ``tokens`` tokens by
    ``count``.

    ``outlined`` is its outline where that is not made from its text by ``outline``: then the text
    is a list of what the outline names, and no lines of it are shown beside. The excerpt covers all
    lines of the source; ``truncated`` tells that the outline or a line is not complete.

    Raises:
        ValueError: from ``position`` or ``bounded``.
    """
    budget = bounded(tokens)
    if source.binary and outlined is None:
        return excerpt(source, pos, tokens, count)
    at = position(source, pos)
    items, partial = (
        _items(source, path, outline)
        if outlined is None
        else (outlined, len(outlined) == MAX_ITEMS)
    )
    if not items:
        return excerpt(source, pos, PLAIN_TOKENS if tokens == ALL_TOKENS else tokens, count)
    is_set = outlined is None and (at != Position(0) or pos.startswith("/"))
    # Without a bound there is no part to take: ``All`` is for the whole outline.
    room = budget // NEAR_SHARE if is_set and tokens != ALL_TOKENS else 0
    order = ranked(
        items,
        _start_of(source),
        by_use=outlined is None and is_code(path),
        near=at.line if is_set else None,
    )
    outlines = _Outline(items, tuple(order), items[-1].line if partial else None, count)
    text, dropped = outlines.within(budget - room)
    near = _near(source, pos, min(room, budget - count(text)), count)
    # Texts joined may count for more than each by itself: then the lines nearby give way.
    for part in (near, ""):
        full = f"{text}\n{part}" if text and part else text or part
        if count(full) <= budget:
            break
    else:
        full = fitting(text, budget, count)
        dropped = True
    return Excerpt(
        full, 0, source.total_lines, source.total_lines, count(full), truncated=dropped or partial
    )


def _start_of(source: SourceText) -> str:
    """What is outlined of a source: its start, by whole lines."""
    data = source.data[:OUTLINED_BYTES]
    if len(source.data) > OUTLINED_BYTES:
        data = data[: data.rfind(b"\n") + 1]
    return data.decode("utf-8", "replace")


def _items(source: SourceText, path: str, outline: Outline) -> tuple[tuple[Item, ...], bool]:
    """The outline of the source's start, and whether the source goes on after it."""
    items = outline(_start_of(source), suffix_of(path))
    return items, len(source.data) > OUTLINED_BYTES or len(items) == MAX_ITEMS


@dataclass(frozen=True)
class _Outline:
    """An outline that is to be fitted.

    ``order`` ranks its items; it ends after the line ``ends_at``, if it is not whole.
    """

    items: Sequence[Item]
    order: tuple[int, ...]
    ends_at: int | None
    count: Count

    def within(self, budget: int) -> tuple[str, bool]:
        """The outline's text within ``budget``, and whether items were left out."""
        plain = [_line(item, item.text) for item in self.items]
        if self._fits(range(len(plain)), plain, budget):
            return self._text(range(len(plain)), self._documented(plain, budget)), False
        brief = [_line(item, short(item.text)) for item in self.items]
        kept = self.order if self._fits(self.order, brief, budget) else self._chosen(brief, budget)
        room = budget - self.count(self._text(kept, brief))
        for index in kept if room > 0 else ():
            # The most telling signatures are shown whole.
            more = self.count(plain[index] + "\n") - self.count(brief[index] + "\n")
            if 0 < more <= room:
                brief[index], room = plain[index], room - more
        # Tokens of lines do not add up to those of the text: what is over goes from the end.
        while kept and not self._fits(kept, brief, budget):
            kept = kept[:-1]
        text = self._text(kept, brief)
        return text if self.count(text) <= budget else "", len(kept) < len(plain)

    def _documented(self, lines: Sequence[str], budget: int) -> list[str]:
        """``lines``, of which all stand, with the first line of documentation where there is
        room.
        """
        made = list(lines)
        room = budget - self.count(self._text(range(len(made)), made))
        for index in self.order:
            doc = self.items[index].doc
            if doc and (cost := self.count(f"  # {doc}") + 1) <= room:
                made[index] += f"  # {doc}"
                room -= cost
        return made if self._fits(range(len(made)), made, budget) else list(lines)

    def _chosen(self, lines: Sequence[str], budget: int) -> tuple[int, ...]:
        """The first of ``order`` whose lines ``budget`` holds, with the words on those left out."""
        left = budget - self.count(self._text((), lines))
        for number, index in enumerate(self.order):
            left -= self.count(lines[index] + "\n")
            if left < 0:
                return self.order[:number]
        return self.order

    def _fits(self, kept: Sequence[int], lines: Sequence[str], budget: int) -> bool:
        return self.count(self._text(kept, lines)) <= budget

    def _text(self, kept: Sequence[int], lines: Sequence[str]) -> str:
        left_out = len(self.items) - len(kept)
        words = [f"… {left_out:,} more entries left out"] if left_out else []
        words += (
            [f"… lines after {self.ends_at} are not outlined"] if self.ends_at is not None else []
        )
        return "\n".join([*(lines[index] for index in sorted(kept)), *words])


def _line(item: Item, text: str) -> str:
    return f"{item.line}: {'  ' * item.level}{text}"


def _near(source: SourceText, pos: str, room: int, count: Count) -> str:
    """The lines from ``pos`` on, under a heading that numbers them, within ``room`` tokens; ``""``
    if there is no room.
    """
    # As wide as it can get: its numbers are known only when the room is.
    heading = "--- lines 000000-000000 of 000000:\n"
    left = room - count(heading) - 1
    if left <= 0:
        return ""
    near = excerpt(source, pos, left, count)
    if not near.text:
        return ""
    return f"--- lines {near.first_line}-{near.last_line} of {near.total_lines}:\n{near.text}"
