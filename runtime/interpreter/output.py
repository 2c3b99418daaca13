"""Bounded stdout and stderr, with a marker where text was left out
(docs/contract/executable-context.md section 4.2).
"""

from __future__ import annotations

from collections.abc import Iterable

SHOWN_CHARS = 8_000
"""Characters of each stream that the model sees of one statement; fewer where the context is
small.
"""

OUTPUT_LIMIT_CHARS = 1 << 20
"""More output than this ends the statement, by a durable verdict."""


def joined(parts: Iterable[tuple[str, str]], stream: str) -> str:
    """The text of one stream."""
    return "".join(text for name, text in parts if name == stream)


def bounded(text: str, limit: int = SHOWN_CHARS) -> str:
    """``text``, or its head and tail with a marker that says how much is missing between them."""
    if len(text) <= limit:
        return text
    head, tail = limit * 3 // 4, limit // 4
    left_out = len(text) - head - tail
    return f"{text[:head]}\n[... {left_out} characters of output left out ...]\n{text[-tail:]}"
