"""The delta feed within its budget: diffs give way before items, and nothing goes without a
word.
"""

from __future__ import annotations

from context_memory import words
from hypothesis import given
from hypothesis import strategies as st

from runtime.base.fences import fenced
from runtime.context.feed import Delta, Item, compressed


def item(number: int, *, rank: int = 2, group: str | None = None, detail: str = "") -> Item:
    """The change of node ``n<number>``: four words, and its diff."""
    return Item(
        Delta(f"view-{number}", "view", f"n{number}", "its source changed", detail), rank, group
    )


def test_what_fits_is_whole() -> None:
    """Each delta with its diff, in the order of the nodes."""
    items = [item(1, detail="+a"), item(2, rank=0)]
    assert compressed(items, None, 40, words) == [
        "n1: its source changed",
        *fenced("+a").split("\n"),
        "n2: its source changed",
    ]
    assert compressed(items, 11, 40, words) == [
        "n1: its source changed",
        *fenced("+a").split("\n"),
        "n2: its source changed",
    ]


def test_diffs_give_way_before_items() -> None:
    """The least important one's first, and its line says that there was one."""
    items = [item(1, detail="+a " * 10), item(2, rank=1, detail="+b " * 10), item(3)]
    assert compressed(items, 30, 40, words) == [
        "n1: its source changed (diff left out for room)",
        "n2: its source changed",
        *fenced("+b " * 10).split("\n"),
        "n3: its source changed",
    ]


def test_items_that_are_left_out_are_counted_by_group() -> None:
    """What is pinned, cannot be read or is about no node stays longest."""
    items = [item(n, group="x" if n < 13 else None) for n in range(15)] + [item(99, rank=0)]
    assert compressed(items, 20, 40, words) == [
        "n0: its source changed",
        "n99: its source changed",
        "12 more changes in group x",
        "2 more changes",
    ]


def test_no_more_than_so_many_items_are_shown() -> None:
    """Whatever room there is."""
    lines = compressed([item(n) for n in range(50)], None, 40, words)
    assert len(lines) == 41
    assert lines[-1] == "10 more changes"


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from([None, "x", "y"]), st.integers(0, 9)),
        max_size=60,
    ),
    st.integers(0, 200),
)
def test_the_budget_holds_and_every_change_is_told_of(
    changes: list[tuple[int, str | None, int]], budget: int
) -> None:
    """By its line or by a number, unless the numbers alone are too long."""
    items = [
        item(n, rank=rank, group=group, detail="+a " * size)
        for n, (rank, group, size) in enumerate(changes)
    ]
    lines = compressed(items, budget, 40, words)
    told = sum(line.startswith("n") for line in lines)
    counted = sum(int(line.split()[0]) for line in lines if " more change" in line)
    assert told + counted == len(items)
    assert words("\n".join(lines)) <= max(budget, 15)
