"""What a job is shown of a character depends on no version of Python."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from runtime.base import characters
from runtime.base.characters import KNOWN, as_literal, is_hidden, is_newer
from runtime.base.fences import label

SHAKING = "\U0001fae8"
"""A face that Unicode has had since version 15, and Python since 3.12."""

LETTER = "\ua7cb"
"""A letter of version 16."""


@pytest.mark.parametrize("kind", ["Cn", "So", "Lu"])
def test_a_newer_character_is_none_whatever_python_knows(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Its number is shown in names, and in the texts of errors and events."""
    monkeypatch.setattr(characters.unicodedata, "category", lambda _: kind)
    assert is_hidden(SHAKING)
    assert is_hidden(LETTER)
    assert label(f"a{SHAKING}.txt") == '"a\\U0001fae8.txt"'


def test_a_literal_is_that_of_the_oldest_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the parts of a value too; what is old enough stands as it is."""

    class Newer:
        """A value of which a newer Python's ``repr`` shows each character."""

        def __repr__(self) -> str:
            return f"'{SHAKING} {LETTER} é \U0001f600'"

    assert as_literal(Newer()) == "'\\U0001fae8 \\ua7cb é \U0001f600'"
    assert as_literal({"é": [SHAKING]}) == "{'é': ['\\U0001fae8']}"
    assert as_literal("a\n") == "'a\\n'"


@pytest.mark.slow
def test_the_newer_ones_are_those_that_this_python_knows_and_the_oldest_does_not() -> None:
    """A Python with a later Unicode than the table's fails here."""
    major, minor = map(int, unicodedata.unidata_version.split(".")[:2])
    assert (14, 0) <= (major, minor) <= (KNOWN, 99)
    unassigned = {
        number for number in range(sys.maxunicode + 1) if unicodedata.category(chr(number)) == "Cn"
    }
    newer = {number for number in range(sys.maxunicode + 1) if is_newer(chr(number))}
    assert len(newer) == 28_111
    if (major, minor) == (14, 0):
        assert newer <= unassigned
    assert not newer & {ord(c) for c in "é\U0001f600\u2028\ufdd0"}
