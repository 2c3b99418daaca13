"""Manipulation indices: the examples of issue 3, and the set-like value itself."""

from __future__ import annotations

from bisect import bisect_left

import pytest
from history_builders import action, message, result
from hypothesis import given
from hypothesis import strategies as st

from runtime.history.indices import ManipulationIndices, NoNextIndex
from runtime.history.properties import BatchAtomicity, ToolLoopAtomicity
from runtime.history.view import View


def test_batch_example() -> None:
    """Only the gap inside the batch is out; with results, all properties together allow the gaps
    around units.
    """
    batch = [
        message("E0"),
        action("A1", "b", "1"),
        action("A2", "b", "2"),
        message("E3"),
        action("A4", "c", "4"),
    ]
    assert BatchAtomicity().manipulation_indices(batch) == {0, 1, 3, 4, 5}
    answered = [*batch[:3], result("O1", "1"), result("O2", "2"), *batch[3:], result("O4", "4")]
    assert View.from_events(answered).manipulation_indices == {0, 1, 5, 6, 8}


def test_tool_loop_example() -> None:
    """A loop reaches from its thinking over all that follows, up to the first message."""
    loop = [
        message("E0"),
        action("A1", "a", "1", thinking=True),
        result("O1", "1"),
        action("A2", "b", "2"),
    ]
    assert ToolLoopAtomicity().manipulation_indices([*loop, message("E3")]) == {0, 1, 4, 5}
    assert View.from_events([*loop, result("O2", "2"), message("E3")]).manipulation_indices == {
        0,
        1,
        5,
        6,
    }


def test_next_thinking_starts_a_new_loop() -> None:
    """Between two loops there is an index."""
    events = [
        action("A1", "a", "1", thinking=True),
        result("O1", "1"),
        action("A2", "b", "2", thinking=True),
    ]
    assert View.from_events([*events, result("O2", "2")]).manipulation_indices == {0, 2, 4}


def test_pinned_head_has_no_gaps_before_it() -> None:
    """Nothing is put before or between the system prompt and the goal."""
    view = View.from_events([message("S", "system"), message("G", "goal"), message("U")])
    assert view.manipulation_indices == {2, 3}


def test_find_next_raises_where_nothing_is() -> None:
    """``find_next`` never returns something below its threshold."""
    indices = ManipulationIndices({1, 4})
    assert indices.find_next(1) == 1
    assert indices.find_next(1, strict=True) == 4
    with pytest.raises(NoNextIndex):
        indices.find_next(4, strict=True)
    with pytest.raises(NoNextIndex):
        ManipulationIndices().find_next(0)


@given(st.sets(st.integers(0, 300)), st.integers(-5, 310), st.booleans())
def test_search_equals_a_sorted_list(values: set[int], threshold: int, strict: bool) -> None:
    """Membership, order and both searches are those of a sorted list."""
    indices, ordered = ManipulationIndices(values), sorted(values)
    assert list(indices) == ordered and indices == values and len(indices) == len(values)
    assert (threshold in indices) == (threshold in values)
    least = threshold + 1 if strict else threshold
    above = ordered[bisect_left(ordered, least) :]
    if above:
        assert indices.find_next(threshold, strict=strict) == above[0]
    else:
        with pytest.raises(NoNextIndex):
            indices.find_next(threshold, strict=strict)
    below = [i for i in ordered if i <= threshold]
    if below:
        assert indices.find_previous(threshold) == below[-1]


def test_indices_handed_out_do_not_change() -> None:
    """A value read before an append still describes the View of that moment."""
    view = View.from_events(
        [message("E0"), action("A1", "a", "1", thinking=True), result("O1", "1")]
    )
    before, events = view.manipulation_indices, view.events
    view.append_event(action("A2", "b", "2"))
    view.append_event(result("O2", "2"))
    assert before == {0, 1, 3} and [e.id for e in events] == ["E0", "A1", "O1"]
    assert view.manipulation_indices == {0, 1, 5}
