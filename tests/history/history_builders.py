"""Short ways to write events in tests."""

from __future__ import annotations

from collections.abc import Iterable

from runtime.base.values import ToolCall
from runtime.history.content import text_content
from runtime.history.events import (
    ActionEvent,
    Condensation,
    MessageEvent,
    MessageSource,
    ObservationEvent,
)
from runtime.history.log import EventLog

THINKING = ({"type": "thinking", "thinking": "hm", "signature": "c2ln"},)


def message(event_id: str, source: str = "user") -> MessageEvent:
    return MessageEvent(
        id=event_id, turn=0, source=MessageSource(source), content=text_content(f"words {event_id}")
    )


def action(
    event_id: str, response: str, call: str | None, *, thinking: bool = False
) -> ActionEvent:
    calls = () if call is None else (ToolCall(id=call, name="python", arguments='{"code": "1"}'),)
    return ActionEvent(
        id=event_id,
        turn=0,
        llm_response_id=response,
        tool_call_id=call,
        thinking_blocks=THINKING if thinking else (),
        source="1",
        text="" if call is not None else f"<script>\n{event_id}\n</script>",
        tool_calls=calls,
    )


def result(event_id: str, call: str | None) -> ObservationEvent:
    return ObservationEvent(
        id=event_id, turn=0, tool_call_id=call, content=text_content(f"out {event_id}")
    )


def forget(
    event_id: str, ids: Iterable[str], summary: str | None = None, offset: int | None = None
) -> Condensation:
    return Condensation(
        id=event_id, turn=0, forgotten_event_ids=tuple(ids), summary=summary, summary_offset=offset
    )


def log_of(*events: object) -> EventLog:
    return EventLog.from_events(events)  # type: ignore[arg-type]


def ids(events: Iterable[object]) -> list[str]:
    return [event.id for event in events]  # type: ignore[attr-defined]
