"""Whether a text has what a schema's ``pattern`` says: by RE2, and counted."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import re2

from runtime.base.redaction.patterns import compiled

STEPS_A_UNIT = 200
"""Bytes by instructions of a pattern that count as one unit of work."""


class Matcher(NamedTuple):
    """A pattern, ``size`` in instructions as it is built, and ``weight`` as it is matched."""

    pattern: Any
    size: int
    weight: int

    def work(self, text: bytes) -> int:
        """What a search costs at most, in units of work."""
        return self.weight * len(text) // STEPS_A_UNIT


@lru_cache(maxsize=256)
def matcher(pattern: str) -> Matcher:
    """The pattern for texts as UTF-8.

    Raises:
        InputError: if RE2 cannot have it.
    """
    made = compiled(pattern)
    options = re2.Options()
    options.log_errors = False
    # Classes of all letters are large and cost little where a text is matched; ASCII's are what
    # counts there.
    try:
        weight = re2.compile(pattern.encode(), options).programsize
    except re2.error:
        weight = made.programsize
    return Matcher(made, made.programsize, weight)


def encoded(text: str) -> bytes:
    """``text`` for a search; what is no Unicode matches nothing."""
    return text.encode("utf-8", "surrogatepass")
