"""How many messages a turn begins with."""

from __future__ import annotations

import pytest

from runtime.base.tokens import encoding
from runtime.job.pacing import MOST_BYTES, room_for
from workflows.continuing import CARRIED_BYTES, fit_an_order


@pytest.mark.parametrize(
    ("sizes", "taken"),
    [
        ([], 0),
        ([1], 1),
        ([10_000], 1),
        ([10_000, 1], 1),
        ([100, 100, 50], 3),
        ([100, 100, 51], 2),
        ([1, 250, 1], 1),
    ],
)
def test_a_turn_begins_with_a_quarter_of_its_prompt(sizes: list[int], taken: int) -> None:
    """And with one message at least, however long it is."""
    assert room_for(["x" * size for size in sizes], len, 1_000) == taken


def test_a_turn_begins_with_what_its_call_can_hold() -> None:
    """Few tokens can be many bytes."""
    count = encoding("cl100k_base").count
    half = " " * (MOST_BYTES // 2)
    assert count(half) < 10_000
    assert room_for([half, half], count, 1_000_000) == 2
    assert room_for([half, half, "x"], count, 1_000_000) == 2
    # Bytes count, not characters.
    assert room_for(["é" * (MOST_BYTES // 4), "é" * (MOST_BYTES // 4), "x"], len, 10**9) == 2


def test_what_waits_fits_the_order_of_another_run() -> None:
    """Bytes count, a half of a pair of characters too."""
    assert fit_an_order([])
    assert fit_an_order(["x" * (CARRIED_BYTES - 1), "\ud800"])
    assert not fit_an_order(["é" * (CARRIED_BYTES // 2), "x"])
