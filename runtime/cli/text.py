"""Text that a model wrote, as a line for people."""

from __future__ import annotations

from runtime.base.controls import clean


def one_line(text: str) -> str:
    """``clean(text)`` on one line: every run of white space becomes one space."""
    return " ".join(clean(text).split())


def first_line(source: str, limit: int = 70) -> str:
    """The first line of a statement that says something, cut to ``limit`` characters."""
    line = next((line for line in source.splitlines() if line.strip()), "")
    return shortened(one_line(line), limit)


def shortened(text: str, limit: int) -> str:
    """``text``, with an ellipsis for what is beyond ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
