"""What differs from a record by its marks alone is the same; all else is not."""

from __future__ import annotations

import pytest

from runtime.job.unmasked import as_recorded, differs_by_marks

MARK, OTHER = "[masked:TOKEN:0123456789abcdef]", "[masked:TOKEN:fedcba9876543210]"


@pytest.mark.parametrize(
    ("recorded", "now"),
    [
        (f"a {MARK} b", "a secret b"),
        (MARK, "secret"),
        (f"{MARK} and {MARK}", "secret and secret"),
        (f"a {MARK}, {OTHER}", f"a {MARK}, other"),
    ],
)
def test_a_mark_stands_for_what_is_there(recorded: str, now: str) -> None:
    """Anything, the same for equal marks; a mark stands for itself."""
    assert differs_by_marks(recorded, now)
    assert as_recorded({"x": [recorded, 1]}, {"x": [now, 2], "y": now}) == {
        "x": [recorded, 2],
        "y": now,
    }


@pytest.mark.parametrize(
    ("recorded", "now"),
    [
        ("a", "b"),
        (f"a {MARK} b", "a secret c"),
        (f"a {MARK} b", "a  b"),
        (f"{MARK} and {MARK}", "secret and other"),
        (f"a {MARK} b", f"a {OTHER} b"),
        (f"a {MARK}", f"a {MARK} b"),
        ("a secret b", f"a {MARK} b"),
        (f"{MARK} b", "b"),
    ],
)
def test_all_else_is_a_difference(recorded: str, now: str) -> None:
    """Other words beside it, nothing in its place, another value that was masked, a mark where none
    was.
    """
    assert not differs_by_marks(recorded, now)
    assert as_recorded([recorded], [now]) == [now]
