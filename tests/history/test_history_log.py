"""The event log's one write path, and the JSON form of events."""

from __future__ import annotations

from typing import Any

import pytest
from history_builders import action, forget, ids, log_of, message, result
from pydantic import ValidationError

from runtime.history.codec import event_from_json, event_to_json
from runtime.history.content import NodePart, TextPart
from runtime.history.events import (
    AgentErrorEvent,
    AsyncPayloadApplied,
    AsyncPayloadPrepared,
    CondensationRequest,
    GroupRecomputed,
    MethodCalled,
    NodeChanged,
    StatementExecuted,
    TickApplied,
    UnknownEvent,
    UserRejectObservation,
)
from runtime.history.log import EventLog

RUNTIME: list[Any] = [
    StatementExecuted(id="x1", turn=1, statement_id="s1", execution_id="e1", status="ok"),
    MethodCalled(
        id="x2",
        turn=1,
        obj_id="foo",
        obj_type="ViewHandle",
        method="SetLod",
        args=("1",),
        kwargs={},
        before_digest="sha256:a",
        after_digest="sha256:b",
    ),
    NodeChanged(id="x3", turn=1, obj_id="foo", delta="lod 0 -> 1"),
    TickApplied(id="x4", turn=1, obj_id="foo", tick_kind="sync", delta="3 lines"),
    AsyncPayloadPrepared(id="x5", turn=1, obj_id="foo", payload_meta={"bytes": 3}),
    AsyncPayloadApplied(id="x6", turn=1, obj_id="foo", payload_meta={"bytes": 3}, delta="summary"),
    GroupRecomputed(id="x7", turn=1, group_id="g", delta="2 members"),
]


def test_append_updates_the_view_in_the_same_call() -> None:
    """There is no moment at which log and View differ."""
    log = EventLog()
    log.append(message("U1"))
    assert ids(log.view) == ids(log) == ["U1"]


def test_the_logs_view_cannot_be_appended_to() -> None:
    """The View of a log has no write path of its own."""
    log = log_of(message("U1"))
    with pytest.raises(TypeError, match="append to the log"):
        log.view.append_event(message("U2"))
    assert not hasattr(log.events, "append") and not hasattr(log.view.events, "append")


def test_appending_the_same_event_again_changes_nothing() -> None:
    """A retried append is harmless; another event under the same id is an error."""
    log = log_of(message("U1"))
    assert log.append(message("U1")) == () and len(log) == 1
    with pytest.raises(ValueError, match="'U1'"):
        log.append(message("U1", "agent"))


def test_runtime_events_are_logged_and_not_shown() -> None:
    """The runtime's own events are in the log alone, and end no tool loop."""
    loop = [
        action("A1", "r1", "t1", thinking=True),
        *RUNTIME,
        result("O1", "t1"),
        action("A2", "r2", "t2"),
    ]
    log = log_of(*loop, result("O2", "t2"))
    assert ids(log.view) == ["A1", "O1", "A2", "O2"]
    assert log.view.manipulation_indices == {0, 4}
    assert len(log) == 11


def test_every_event_survives_its_json_form() -> None:
    """Written and read, each event is equal, and names its type and version."""
    log = log_of(
        message("U1"),
        action("A1", "r1", "t1", thinking=True),
        AgentErrorEvent(
            id="O1", turn=0, tool_call_id="t1", content=(TextPart(text="x"), NodePart(obj_id="foo"))
        ),
        UserRejectObservation(id="O2", turn=0, tool_call_id="t2"),
        CondensationRequest(id="q", turn=0, reason="long"),
        forget("c", ["U1"], "sum", 0),
        *RUNTIME,
    )
    data = [event_to_json(event) for event in log]
    assert all(item["v"] == 1 and item["type"] for item in data)
    read = tuple(event_from_json(item) for item in data)
    assert read == tuple(log)
    assert EventLog.from_events(read).view == log.view


@pytest.mark.parametrize(
    "data",
    [
        {"type": "dream", "v": 1, "id": "d", "turn": 3, "about": {"sheep": [1, 2]}},
        {"type": "message", "v": 2, "id": "m", "turn": 3, "voice": "loud"},
    ],
)
def test_unknown_events_are_preserved(data: dict[str, Any]) -> None:
    """An event of a later type or version is kept whole, is not shown, and is written as it was
    read.
    """
    event = event_from_json(data)
    assert isinstance(event, UnknownEvent)
    assert event_to_json(event) == data
    log = log_of(message("U1"), event)
    assert ids(log) == ["U1", event.id] and ids(log.view) == ["U1"]


def test_a_known_event_of_wrong_form_is_an_error() -> None:
    """Silence is not an option for an event that this release should understand."""
    with pytest.raises(ValidationError):
        event_from_json({"type": "message", "v": 1, "id": "m", "turn": 3, "sauce": "user"})


def test_a_log_restored_from_its_events_is_the_same() -> None:
    """Repairs are part of the log, and are not made twice."""
    log = log_of(
        message("U1"), result("O1", "nothing"), action("A1", "r", "t"), action("A2", "r2", "t")
    )
    assert len(log) == 6
    again = EventLog.from_events(log.events)
    assert again.events == log.events and again.view == log.view
