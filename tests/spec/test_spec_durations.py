"""Durations are written as people write them, and always mean the same number of seconds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.base.durations import LONGEST, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("6h", 21_600), ("90m", 5_400), ("2d", 172_800), ("30s", 30), (45, 45), (0.5, 0.5), ("1.5h", 5_400), ("1h30m", 5_400)],
)  # fmt: skip
def test_what_is_a_duration(text: object, seconds: float) -> None:
    """A number is seconds; a text has units."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["soon", "", "6", "6 h", "h", "-1h", "6H", "1w", "0s", 0, -1, True, None, float("nan"), 10**400, "9" * 60 + "d"]
)  # fmt: skip
def test_what_is_none(text: object) -> None:
    """Anything else, zero, and more than ten years are refused."""
    with pytest.raises(ValueError, match=r"not a duration|out of range"):
        parse_duration(text)


@given(st.one_of(st.integers(1, LONGEST), st.floats(0, LONGEST, exclude_min=True)))
def test_formatting_is_exact(seconds: float) -> None:
    """What is formatted is parsed back to the very same number."""
    assert parse_duration(format_duration(seconds)) == seconds
