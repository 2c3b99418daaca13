"""A job's own patterns: regular expressions of RE2, which takes time that is linear in the text,
whatever it holds.

RE2 has Python's syntax but for look-around and back-references. Its ``\\w`` and ``\\d`` know ASCII
alone; here they know all letters and digits, as Python's do for text.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

from runtime.base.errors import InputError

_WORDS = {"w": r"\pL\pN_", "d": r"\p{Nd}"}


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """The pattern, for UTF-8.

    Raises:
        InputError: if it is no regular expression of RE2's.
    """
    options = re2.Options()
    # RE2 would write them to stderr by itself.
    options.log_errors = False
    try:
        return re2.compile(_with_all_letters(pattern).encode(), options)
    except (re2.error, UnicodeError) as error:
        raise InputError(
            f"{pattern!r} is no regular expression of RE2's (no look-around, no back-references):"
            f" {_said(error)}"
        ) from None


def _said(error: Exception) -> str:
    said = error.args[0] if error.args else error
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def _with_all_letters(pattern: str) -> str:
    """``pattern`` with ``\\w``, ``\\d`` and their opposites written as the classes that Python
    means.
    """
    parts: list[str] = []
    inside, position = False, 0
    while position < len(pattern):
        character = pattern[position]
        step = 2 if character == "\\" else 1
        piece = pattern[position : position + step]
        letter = piece[1:]
        if letter in _WORDS:
            piece = _WORDS[letter] if inside else f"[{_WORDS[letter]}]"
        elif letter.lower() in _WORDS and letter and not inside:
            piece = f"[^{_WORDS[letter.lower()]}]"
        # RE2 calls the text's end what Python calls \Z, by a small letter.
        elif letter == "Z":
            piece = r"\z"
        elif character == "[" and not inside:
            inside = True
            # A bracket or its opposite right after the beginning stands for itself.
            step += pattern.startswith("^", position + 1)
            step += pattern.startswith("]", position + step)
            piece = pattern[position : position + step]
        elif character == "]":
            inside = False
        parts.append(piece)
        position += step
    return "".join(parts)
