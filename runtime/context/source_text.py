"""A source's bytes as lines of text: the one place that decides what a line is and what is text at
all.

Lines end at ``\\n``, ``\\r\\n`` or ``\\r``, as Python's parser and most editors count them, and are
numbered from 0. The bytes stay bytes: only the lines that are asked for are decoded, so a window
into a large file costs no copy of it.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

LINE_BYTES = 4096
"""A line of more bytes is shown cut, with a mark."""

BINARY_PROBE = 8000
"""A NUL among that many first bytes makes a source binary, as in git."""

NOT_UTF8 = "[some bytes here are not UTF-8; each is shown as \ufffd]"

# UTF-32 first: its little-endian mark begins with that of UTF-16.
_WIDE = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True)
class Line:
    """One line as it is shown: ``cut`` if it has more than ``text`` shows, ``broken`` if it held
    bytes that are no UTF-8.
    """

    text: str
    cut: bool = False
    broken: bool = False


@dataclass(frozen=True)
class SourceText:
    """Lines over ``data``, in which every line break is ``\\n``; ``binary`` sources have no
    lines.
    """

    data: bytes
    binary: bool = False

    @classmethod
    def of(cls, raw: bytes) -> SourceText:
        """The text in ``raw``: UTF-8, or what a byte order mark says; binary if it holds a NUL
        early on.
        """
        for mark, encoding in _WIDE:
            if raw.startswith(mark):
                raw = raw.decode(encoding, "replace").encode("utf-8", "replace")
                break
        raw = raw.removeprefix(codecs.BOM_UTF8)
        # After the wide encodings: in those every other byte of plain text is a NUL.
        if b"\0" in raw[:BINARY_PROBE]:
            return cls(b"", binary=True)
        if b"\r" in raw:
            raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return cls(raw)

    @cached_property
    def total_lines(self) -> int:
        """How many lines there are; a last one without a line break counts."""
        return self.data.count(b"\n") + (not self.data.endswith(b"\n") if self.data else 0)

    def start_of(self, line: int) -> int:
        """The offset at which ``line`` starts; the end of the data if there are fewer lines."""
        offset, left = 0, line
        while left > 0 and offset < len(self.data):
            # Whole stretches are counted at C speed; only the last one is searched break by break.
            stretch = self.data.count(b"\n", offset, offset + 65_536)
            if stretch < left:
                offset, left = offset + 65_536, left - stretch
                continue
            while left > 0:
                offset, left = self.data.index(b"\n", offset) + 1, left - 1
        return min(offset, len(self.data))

    def line_at(self, offset: int) -> int:
        """The line that holds the byte at ``offset``."""
        return self.data.count(b"\n", 0, offset)

    def down_from(self, offset: int) -> Iterator[Line]:
        """The lines from the one that starts at ``offset``."""
        while offset < len(self.data):
            stop = self.data.find(b"\n", offset)
            stop = len(self.data) if stop < 0 else stop
            yield self._line(offset, stop)
            offset = stop + 1

    def up_from(self, offset: int) -> Iterator[Line]:
        """The lines before the one that starts at ``offset``, nearest first."""
        while offset > 0:
            stop = offset - 1
            offset = self.data.rfind(b"\n", 0, stop) + 1
            yield self._line(offset, stop)

    def line_from_column(self, offset: int, column: int) -> Line:
        """The line that starts at ``offset``; one too long to be shown whole starts at character
        ``column``, with a mark.
        """
        stop = self.data.find(b"\n", offset)
        stop = len(self.data) if stop < 0 else stop
        if column <= 0 or stop - offset <= LINE_BYTES:
            return self._line(offset, stop)
        # A character has at most four bytes, so that many bytes hold all characters before the
        # column. Bytes that are not UTF-8 make the place approximate.
        head = self.data[offset : min(stop, offset + 4 * column)].decode("utf-8", "replace")[
            :column
        ]
        start = min(offset + len(head.encode("utf-8", "replace")), stop)
        rest = self._line(start, stop)
        return Line(f"[line from column {column}] {rest.text}", True, rest.broken)

    def _line(self, start: int, stop: int) -> Line:
        shown = min(stop, start + LINE_BYTES)
        # Not in the middle of a character, which has at most three continuation bytes.
        for _ in range(3):
            if shown < stop and self.data[shown] & 0xC0 == 0x80:
                shown -= 1
        piece = self.data[start:shown]
        try:
            text, broken = piece.decode("utf-8"), False
        except UnicodeDecodeError:
            text, broken = piece.decode("utf-8", "replace"), True
        if shown < stop:
            return Line(f"{text} {cut_mark(stop - shown)}", True, broken)
        return Line(text, False, broken)


def cut_mark(more: int) -> str:
    """The mark at the end of a line of which ``more`` bytes are not shown."""
    return f"[line cut: {more:,} more bytes]"
