"""Headings between texts that a model wrote or was shown, which no line of these can forge."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runtime.base.characters import is_hidden
from runtime.base.controls import clean

SHORTEST = 3
"""Strokes on each side of a heading. More are for texts with a line that looks like one."""

_ALIKE = {
    # Hyphens and dashes of all kinds, the minus, and lines that are drawn with characters
    "-": r"[-\u2010-\u2015\u2212\u2500\u2501\ufe58\ufe63\uff0d]",
    "=": r"[=\u2550\ufe66\uff1d]",
}
"""What a reader might take for a stroke."""


@dataclass(frozen=True)
class Headed:
    """A text with a heading, or none."""

    text: str
    heading: str | None = None


def under_headings(parts: Sequence[Headed], stroke: str = "-") -> str:
    """The parts below each other. All headings have so many strokes as no line of the texts has
    that looks like one.
    """
    looks = re.compile(f"({_ALIKE[stroke]}{{{SHORTEST},}}) .* {_ALIKE[stroke]}{{{SHORTEST},}}")
    taken = {size for part in parts for size in _sizes(part.text, looks)}
    size = next(size for size in itertools.count(SHORTEST) if size not in taken)
    lines: list[str] = []
    for part in parts:
        if part.heading is not None:
            lines.append(f"{stroke * size} {part.heading} {stroke * size}")
        if part.text:
            lines.append(part.text)
    return "\n".join(lines)


def _sizes(text: str, looks: re.Pattern[str]) -> Iterator[int]:
    """With how many strokes those lines of a text begin that a reader might take for headings."""
    # As it is printed: without what told a line apart from a heading.
    for line in clean(text).splitlines():
        seen = "".join(" " if is_hidden(character) else character for character in line).strip()
        if heading := looks.fullmatch(seen):
            yield len(heading[1])
