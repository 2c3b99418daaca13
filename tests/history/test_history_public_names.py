"""The names by which the rest of the program, and others, use the history room."""

from __future__ import annotations

import inspect
from collections.abc import Sequence, Set

import pytest
from history_builders import action, message, result

import runtime.history
from runtime.history import ALL_PROPERTIES, Condensation, EventLog, NoNextIndex, View, ViewProperty


def test_the_room_exports_its_names() -> None:
    """What is public is re-exported, and nothing else."""
    assert sorted(runtime.history.__all__) == [
        "ALL_PROPERTIES",
        "Condensation",
        "CondensationRequest",
        "CondensationSummaryEvent",
        "ContentPart",
        "Event",
        "EventLog",
        "ManipulationIndices",
        "NoNextIndex",
        "NodePart",
        "TextPart",
        "USER_MESSAGES_PINNED",
        "View",
        "ViewProperty",
        "plain_text",
        "text_content",
    ]
    assert all(isinstance(rule, ViewProperty) for rule in ALL_PROPERTIES)


def test_a_view_s_names() -> None:
    """Events are a read-only sequence, indices a set with ``find_next``, and the View itself can be
    indexed.
    """
    events = [message("G", "goal"), action("A", "r", "t"), result("O", "t")]
    view = View.from_events(events)
    assert (list(view), view[0], view[-1], len(view)) == (events, events[0], events[-1], 3)
    assert isinstance(view.events, Sequence) and not hasattr(view.events, "append")
    assert isinstance(view.manipulation_indices, Set)
    assert (
        str(inspect.signature(view.manipulation_indices.find_next))
        == "(threshold: 'int', strict: 'bool' = False) -> 'int'"
    )
    assert view.manipulation_indices.find_next(1) == 1
    assert view.manipulation_indices.find_next(1, strict=True) == 3
    with pytest.raises(NoNextIndex):
        view.manipulation_indices.find_next(3, strict=True)
    assert view.unhandled_condensation_request is False
    assert view.append_event(message("U")) == ()
    log = EventLog()
    assert log.append(events[0]) == ()
    assert list(log.view) == events[:1]


def test_a_condensation_s_names() -> None:
    """Its summary is an event of its own, with an id made from the condensation's."""
    made = Condensation(
        id="c",
        turn=3,
        forgotten_event_ids=("A", "O"),
        summary="S",
        summary_offset=1,
        llm_response_id="resp",
    )
    assert made.summary_event is not None
    assert (made.summary_event.id, made.summary_event.summary) == ("c-summary", "S")
    assert Condensation(id="d", turn=3, forgotten_event_ids=("A",)).summary_event is None
