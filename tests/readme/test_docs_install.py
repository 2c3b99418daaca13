"""The table of what an installation weighs counts every requirement once."""

from __future__ import annotations

from docs_tools.install import PURPOSES, REST, table


def test_the_table_has_a_line_for_each_purpose() -> None:
    """The heaviest come first, and none of them weighs nothing; the last line is their sum."""
    lines = [line.strip("| ").split(" | ") for line in table().splitlines()[2:]]
    weights = [int(weight.replace(",", "")) for _, weight in lines]
    assert {purpose for purpose, _ in lines[:-1]} == {*PURPOSES, REST}
    assert weights[:-1] == sorted(weights[:-1], reverse=True)
    assert min(weights) > 0
    assert abs(sum(weights[:-1]) - weights[-1]) <= len(weights)
