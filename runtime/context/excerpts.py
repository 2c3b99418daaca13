"""Level of detail 0: whole lines around a position, within a token budget.

The window starts at the line of ``pos`` and extends down; where the source ends before the budget
does, it extends up. A source that fits is shown whole. The text is the plain lines; where they
stand is told by the excerpt's fields.
Deterministic: equal source, position, budget and counter give equal text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from runtime.base.digests import digest_of
from runtime.context.source_text import LINE_BYTES, NOT_UTF8, Line, SourceText
from runtime.context.sources import ALL_TOKENS, ReadRequest

Count = Callable[[str], int]

READER_TOKENS = 50_000
"""The reader's own bound: what ``All`` stands for, and the most that any budget brings."""

READER_BYTES = 256 * 1024
"""The most UTF-8 bytes in one excerpt, whatever they count."""

_FROM_END = re.compile(r"-([1-9][0-9]{0,11})")
_POSITION = re.compile(r"([0-9]{1,12})(?::([0-9]{1,12}))?")


@dataclass(frozen=True)
class Position:
    """A place in a source: a line, and a character in it, both from 0."""

    line: int
    column: int = 0


@dataclass(frozen=True)
class Excerpt:
    """A rendering of a source: its text, the lines it covers (``last_line`` exclusive), and whether
    there is more.
    """

    text: str
    first_line: int
    last_line: int
    total_lines: int
    tokens: int
    truncated: bool


def basis_of(request: ReadRequest, fingerprint: str) -> str:
    """The digest of all that the text depends on: equal basis, equal text.

    Structure depends on the kind of file too, so for it the end of the path's name counts.
    """
    parts: list[str | int] = [fingerprint, request.pos, request.tokens, request.lod]
    if request.lod != 0:
        parts.append(suffix_of(request.path))
    return digest_of(parts)


def suffix_of(path: str) -> str:
    """The last dot of a path's name and what follows, in lower case; ``""`` if there is none."""
    name = path.rsplit("/", 1)[-1]
    return "." + name.rsplit(".", 1)[1].lower() if "." in name else ""


def bounded(tokens: int) -> int:
    """The budget in tokens that ``tokens`` (a count or ``ALL_TOKENS``) stands for.

    Raises:
        ValueError: if it is negative.
    """
    if tokens == ALL_TOKENS:
        return READER_TOKENS
    if tokens < 0:
        raise ValueError(f"tokens must be a count or All, not {tokens}")
    return min(tokens, READER_TOKENS)


def position(source: SourceText, pos: str) -> Position:
    """Where ``pos`` is in ``source``; a line past the end is the last one, ``-40`` the fortieth
    from the end.

    Raises:
        ValueError: if ``pos`` has none of the forms of ``ReadRequest.pos``, or no line contains its
            text.
    """
    last = max(source.total_lines - 1, 0)
    if pos.startswith("/") and len(pos) > 1:
        offset = source.data.find(pos[1:].encode("utf-8", "replace"))
        if offset < 0:
            raise ValueError(f"no line contains {pos[1:]!r}")
        return Position(source.line_at(offset))
    if (back := _FROM_END.fullmatch(pos)) is not None:
        return Position(max(source.total_lines - int(back[1]), 0))
    match = _POSITION.fullmatch(pos)
    if match is None:
        raise ValueError(f"pos must be 'line', 'line:column', '-lines' or '/text', not {pos!r}")
    return Position(min(int(match[1]), last), int(match[2] or 0))


def excerpt(source: SourceText, pos: str, tokens: int, count: Count) -> Excerpt:
    """The excerpt of ``source`` at ``pos`` of at most ``tokens`` tokens by ``count``.

    Raises:
        ValueError: from ``position`` or ``bounded``.
    """
    budget = bounded(tokens)
    if source.binary:
        text = fitting("[binary content, not shown as text]", budget, count)
        return Excerpt(text, 0, 0, 0, count(text), truncated=True)
    at = position(source, pos)
    window = _whole(source, budget, count) or _window(source, at, budget, count)
    if not window.broken:
        return window.excerpt(source, count)
    room = budget - count("\n" + NOT_UTF8)
    # A note that takes half of a small budget would say more than the text.
    if room * 2 < budget:
        return window.excerpt(source, count)
    narrower = _window(source, at, room, count)
    plain = narrower.excerpt(source, count)
    # The note took the room of the very bytes that it is about.
    if not narrower.broken:
        return plain
    text = f"{plain.text}\n{NOT_UTF8}"
    noted = count(text)
    return replace(plain, text=text, tokens=noted) if noted <= budget else plain


def fitting(text: str, budget: int, count: Count) -> str:
    """``text`` if it is within ``budget``, else a prefix with a mark, or ``""`` where not even the
    mark fits.
    """
    if count(text) <= budget:
        return text
    mark = " [cut]"
    low, high = 0, min(len(text), LINE_BYTES)
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[:middle] + mark) <= budget:
            low = middle
        else:
            high = middle - 1
    cut = text[:low] + mark
    return cut if count(cut) <= budget else ""


@dataclass(frozen=True)
class _Window:
    """Lines from ``first`` on, as they are shown."""

    first: int
    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)

    @property
    def broken(self) -> bool:
        return any(line.broken for line in self.lines)

    def excerpt(self, source: SourceText, count: Count) -> Excerpt:
        text, total = self.text, source.total_lines
        last = self.first + len(self.lines)
        truncated = self.first > 0 or last < total or any(line.cut for line in self.lines)
        return Excerpt(text, self.first, last, total, count(text), truncated)


def _whole(source: SourceText, budget: int, count: Count) -> _Window | None:
    """All lines, if the source fits and no line is cut."""
    # Few tokens have 16 bytes: a source this large need not be counted to be known to be too
    # large.
    if len(source.data) > min(READER_BYTES, 16 * budget):
        return None
    window = _Window(0, tuple(source.down_from(0)))
    if any(line.cut for line in window.lines) or count(window.text) > budget:
        return None
    return window


def _window(source: SourceText, at: Position, budget: int, count: Count) -> _Window:
    start = source.start_of(at.line)
    if start >= len(source.data):
        return _Window(0, ())
    head = source.line_from_column(start, at.column)
    lines = [head]
    spent, size = count(head.text + "\n"), len(head.text.encode())
    if spent > budget:
        return _single(at.line, head, budget, count)
    first, below = at.line, source.down_from(start)
    # It is taken already, from its column on.
    next(below)
    reached_end = False
    for line in below:
        spent, size = spent + count(line.text + "\n"), size + len(line.text.encode()) + 1
        if spent > budget or size > READER_BYTES:
            break
        lines.append(line)
    else:
        reached_end = True
    if reached_end:
        above: list[Line] = []
        for line in source.up_from(start):
            spent, size = spent + count(line.text + "\n"), size + len(line.text.encode()) + 1
            if spent > budget or size > READER_BYTES:
                break
            above.append(line)
        first, lines = at.line - len(above), [*reversed(above), *lines]
    return _shrunk(_Window(first, tuple(lines)), at.line, budget, count)


def _shrunk(window: _Window, line: int, budget: int, count: Count) -> _Window:
    """``window`` without the lines farthest from ``line`` until the text as a whole is within
    budget.

    The sum of the lines' counts is nearly, not always, the count of their text.
    """
    while count(window.text) > budget:
        if len(window.lines) == 1:
            return _single(window.first, window.lines[0], budget, count)
        if line - window.first > window.first + len(window.lines) - 1 - line:
            window = _Window(window.first + 1, window.lines[1:])
        else:
            window = _Window(window.first, window.lines[:-1])
    return window


def _single(number: int, line: Line, budget: int, count: Count) -> _Window:
    """One line alone, cut to the budget if it must be."""
    text = fitting(line.text, budget, count)
    if not text:
        return _Window(number, ())
    return _Window(number, (Line(text, line.cut or text != line.text, line.broken),))
