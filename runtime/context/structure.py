"""Level of detail 1: the outline of a whole source, and the lines near a position, within a token budget.

Each outline line is ``LINE: text``, indented by depth, with 0-based lines that ``SetPos`` takes. Where the budget does not
hold it, detail goes before items: documentation first, then the deepest level, then items from the end, and the text says
how many are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runtime.context.excerpts import Count, Excerpt, bounded, excerpt, fitting, position, suffix_of
from runtime.context.outlines import MAX_ITEMS, Item, outline
from runtime.context.source_text import SourceText

OUTLINED_BYTES = 256 * 1024
"""How much of a source is outlined, from its start. Parsing holds the interpreter lock (half a second for
dense Python of this size), and a worker must not stall."""


def structure(
    source: SourceText, path: str, pos: str, tokens: int, count: Count, outlined: Sequence[Item] | None = None
) -> Excerpt:
    """The structure of ``source`` with the lines near ``pos``, of at most ``tokens`` tokens by ``count``.

    ``outlined`` is its outline where that is not made from its text: then the text is a list of what the outline names, and
    no lines of it are shown beside.
    The excerpt covers all lines of the source; ``truncated`` tells that the outline or a line is not complete.

    Raises:
        ValueError: from ``position`` or ``bounded``.
    """
    budget = bounded(tokens)
    if source.binary and outlined is None:
        return excerpt(source, pos, tokens, count)
    position(source, pos)
    items, partial = _items(source, path) if outlined is None else (outlined, len(outlined) == MAX_ITEMS)
    if not items:
        return excerpt(source, pos, tokens, count)
    lines, dropped = _fitted(items, partial, budget if outlined is not None else budget - budget // 4, count)
    text = "\n".join(lines)
    near = _near(source, pos, budget - count(text), count) if outlined is None else ""
    for part in (near, ""):
        full = f"{text}\n{part}" if text and part else text or part
        if count(full) <= budget:
            break
    else:
        full = fitting(text, budget, count)
        dropped = True
    return Excerpt(full, 0, source.total_lines, source.total_lines, count(full), truncated=dropped or partial)


def _items(source: SourceText, path: str) -> tuple[tuple[Item, ...], bool]:
    """The outline of the source's start, and whether the source goes on after it."""
    longer = len(source.data) > OUTLINED_BYTES
    data = source.data[:OUTLINED_BYTES]
    if longer:
        data = data[: data.rfind(b"\n") + 1]
    items = outline(data.decode("utf-8", "replace"), suffix_of(path))
    return items, longer or len(items) == MAX_ITEMS


def _fitted(items: Sequence[Item], partial: bool, budget: int, count: Count) -> tuple[list[str], bool]:
    """The outline's lines within ``budget``, and whether items were left out."""
    end = [f"… lines after {items[-1].line} are not outlined"] if partial else []
    for kept, docs in _variants(items):
        left = len(items) - len(kept)
        lines = [_shown(item, docs=docs) for item in kept]
        lines += [f"… {left:,} deeper entries left out"] if left else []
        if count("\n".join([*lines, *end])) <= budget:
            return [*lines, *end], left > 0
    head = _head(items, budget - count("\n".join(["", *end])), count)
    return [*head, *end] if head else [], True


def _variants(items: Sequence[Item]) -> Iterator[tuple[Sequence[Item], bool]]:
    """The outline with ever less detail."""
    yield items, True
    yield items, False
    for level in sorted({item.level for item in items}, reverse=True)[1:]:
        yield [item for item in items if item.level <= level], False


def _head(items: Sequence[Item], budget: int, count: Count) -> list[str]:
    """As many of the top level's first items as the budget holds."""
    top = min(item.level for item in items)
    lines: list[str] = []
    spent = count(_left_out(len(items)))
    for item in items:
        if item.level > top:
            continue
        line = _shown(item, docs=False)
        spent += count(line + "\n")
        if spent > budget:
            break
        lines.append(line)
    while lines and count("\n".join([*lines, _left_out(len(items) - len(lines))])) > budget:
        lines.pop()
    lines.append(_left_out(len(items) - len(lines)))
    return lines if count("\n".join(lines)) <= budget else []


def _left_out(number: int) -> str:
    return f"… {number:,} more entries left out"


def _shown(item: Item, *, docs: bool) -> str:
    doc = f"  # {item.doc}" if docs and item.doc else ""
    return f"{item.line}: {'  ' * item.level}{item.text}{doc}"


def _near(source: SourceText, pos: str, room: int, count: Count) -> str:
    """The lines from ``pos`` on, under a heading that numbers them, within ``room`` tokens; ``""`` if there is no room."""
    heading = "--- lines 000000-000000 of 000000:\n"
    left = room - count(heading) - 1
    if left <= 0:
        return ""
    near = excerpt(source, pos, left, count)
    if not near.text:
        return ""
    return f"--- lines {near.first_line}-{near.last_line} of {near.total_lines}:\n{near.text}"
