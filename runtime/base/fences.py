"""Foreign text in a prompt: what files, pages, tools, statements and models say stands between two
lines that it cannot hold.

Framework lines stand outside, the user's words in messages of their own. ``<<7c1e`` opens a fence
and ``7c1e>>`` closes it: the mark between comes from the text's digest, so equal text has an equal
fence in every turn, and is lengthened until no line of the text has it. Names and labels, which
stand in framework lines, are told on one line without what a reader does not see.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from runtime.base.characters import is_hidden, numbered

SHORTEST = 4
"""Hexadecimal digits of a mark. Longer ones are for texts that hold it."""

_OPENING = re.compile(r"<<([0-9a-f]{4,64})")
_PLAIN = re.compile(r"[^\"\\\[\]|]*")
_QUOTES = frozenset('"\\')


def fenced(text: str) -> str:
    """``text`` between an opening and a closing line.

    Lone carriage returns and separators of lines do not end one.
    """
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    mark = next(
        digest[:size] for size in range(SHORTEST, len(digest) + 1) if digest[:size] not in text
    )
    return f"<<{mark}\n{text}\n{mark}>>"


def unfenced(text: str) -> str:
    """What ``fenced`` was given."""
    return text.partition("\n")[2].rpartition("\n")[0]


def outside(prompt: str) -> Iterator[str]:
    """The lines of ``prompt`` that stand outside fences, as a reader finds them."""
    mark: str | None = None
    # A newline alone ends a line: what else Python splits at may stand within a fence.
    for line in prompt.split("\n"):
        if mark is None and (opening := _OPENING.fullmatch(line)):
            mark = opening[1]
        elif mark is None:
            yield line
        elif line == f"{mark}>>":
            mark = None


def label(text: str) -> str:
    """A name as it stands in a framework line: as it is where it is plain, else as ``phrase`` has
    it, in quotes.
    """
    return text if text and " " not in text and _is_plain(text) else _quoted(text)


def phrase(text: str) -> str:
    """A sentence as it stands in a framework line: as it is where nothing in it could end what it
    stands in, else in quotes.
    """
    return text if _is_plain(text) else _quoted(text)


def one_line(text: str) -> str:
    """``text`` as a line of its own, with escapes for what a reader does not see and for what
    breaks a line.
    """
    return "".join(_escaped(character) if is_hidden(character) else character for character in text)


def _is_plain(text: str) -> bool:
    return _PLAIN.fullmatch(text) is not None and not any(map(is_hidden, text))


def _quoted(text: str) -> str:
    escaped = "".join(_escaped(c) if c in _QUOTES or is_hidden(c) else c for c in text)
    return f'"{escaped}"'


def _escaped(character: str) -> str:
    if character in _QUOTES:
        return f"\\{character}"
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character) or numbered(character)
