"""Every event sequence up to a length: the View against a naive oracle written from the rules of
issue 3.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from history_builders import forget, ids, message
from history_oracle import naive_view
from history_sequences import symbols, walk

from runtime.history.log import EventLog
from runtime.history.properties import ALL_PROPERTIES
from runtime.history.view import View
from tests.history.oracle.provider_rules import check_view

FIRST = [symbol for symbol, _, _ in symbols(0, 0)]


def equals_oracle(log: list[Any], view: View) -> None:
    expected = naive_view(log)
    assert [e.id for e in expected.shown] == ids(view), log
    assert expected.indices == view.manipulation_indices, log
    assert expected.request == view.unhandled_condensation_request


def test_short_sequences_equal_the_oracle() -> None:
    """All sequences of up to 4 events: the same events and the same indices as by the rules."""
    assert walk(None, 4, equals_oracle) == 5030


@pytest.mark.slow
@pytest.mark.parametrize("first", FIRST, ids=str)
def test_all_sequences_of_five_equal_the_oracle(first: Any) -> None:
    """All sequences of up to 5 events, by their first event: the same as by the rules."""
    assert walk(first, 5, equals_oracle) > 1_000


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", FIRST, ids=str)
def test_all_sequences_of_six_equal_the_oracle(first: Any) -> None:
    """All 470,925 sequences of up to 6 events, by their first event: the same as by the rules."""
    assert walk(first, 6, equals_oracle) > 10_000


@pytest.mark.slow
def test_live_equals_rebuilt_and_every_prompt_is_valid() -> None:
    """All sequences of up to 4 events: a View rebuilt from the recorded log is equal, and providers
    take its messages.
    """

    def check(log: list[Any], view: View) -> None:
        recorded = EventLog.from_events(log)
        assert recorded.view == view == View.from_events(log) == View.from_events(recorded.events)
        assert EventLog.from_events(recorded.events).events == recorded.events
        assert check_view(view.events) == [], log

    walk(None, 4, check)


@pytest.mark.slow
def test_every_property_accepts_every_view() -> None:
    """All sequences of up to 4 events: no property finds anything to drop from the View."""

    def check(log: list[Any], view: View) -> None:
        recorded = EventLog.from_events(log).events
        for rule in ALL_PROPERTIES:
            assert rule.enforce(view.events, recorded) == frozenset(), (rule, log)

    walk(None, 4, check)


@pytest.mark.slow
def test_forgetting_between_any_two_indices_is_sound() -> None:
    """All sequences of up to 4 events: what lies between two indices goes, exactly, and every
    property accepts the rest.
    """

    def check(log: list[Any], view: View) -> None:
        for start, stop in combinations(view.manipulation_indices, 2):
            kept = [*ids(view)[:start], *ids(view)[stop:]]
            condensed = EventLog.from_events(log)
            assert condensed.append(forget("c", ids(view)[start:stop])) == ()
            assert ids(condensed.view) == kept
            for rule in ALL_PROPERTIES:
                assert rule.enforce(condensed.view.events, condensed.events) == frozenset(), (
                    rule,
                    log,
                )
                assert (
                    rule.manipulation_indices(condensed.view.events)
                    >= condensed.view.manipulation_indices
                )

    walk(None, 4, check)


@pytest.mark.slow
def test_inserting_at_any_index_is_sound() -> None:
    """All sequences of up to 4 events: a message put at an index splits nothing, and a summary
    lands where it was put.
    """

    def check(log: list[Any], view: View) -> None:
        for index in view.manipulation_indices:
            longer = [*view[:index], message("new"), *view[index:]]
            recorded = [*EventLog.from_events(log), message("new")]
            for rule in ALL_PROPERTIES[:3]:
                assert rule.enforce(longer, recorded) == frozenset(), (rule, log)
            condensed = EventLog.from_events(log)
            assert condensed.append(forget("c", (), "in between", index)) == ()
            assert ids(condensed.view) == [*ids(view)[:index], "c-summary", *ids(view)[index:]]

    walk(None, 4, check)


def test_each_propertys_own_indices_equal_the_rules() -> None:
    """All raw sequences of up to 4 events, not repaired by any View: each property's indices, which
    never raise.
    """
    from history_oracle import naive_batches, naive_loops, naive_pairs

    from runtime.history.events import is_shown
    from runtime.history.properties import BatchAtomicity, ToolCallMatching, ToolLoopAtomicity

    def gaps(units: list[list[int]], waiting: list[int], length: int) -> set[int]:
        return {
            gap
            for gap in range(length + 1)
            if not any(min(u) < gap <= max(u) for u in units) and not any(p < gap for p in waiting)
        }

    def check(log: list[Any], view: View) -> None:
        raw = [event for event in log if is_shown(event)]
        pairs, waiting = naive_pairs(raw)
        assert BatchAtomicity().manipulation_indices(raw) == gaps(naive_batches(raw), [], len(raw))
        assert ToolLoopAtomicity().manipulation_indices(raw) == gaps(naive_loops(raw), [], len(raw))
        assert ToolCallMatching().manipulation_indices(raw) == gaps(
            [list(p) for p in pairs], waiting, len(raw)
        )

    walk(None, 4, check)
