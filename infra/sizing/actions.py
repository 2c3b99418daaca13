"""What Temporal Cloud would bill for a history (docs.temporal.io/cloud/actions)."""

from __future__ import annotations

from collections.abc import Iterable

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

BILLED = {
    EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED: 2,
    EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: 1,
    EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES: 1,
    EventType.EVENT_TYPE_TIMER_STARTED: 1,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED: 1,
}
"""Actions of an event. All markers of a workflow task are one; heartbeats, which are Actions too,
leave no event.
"""


def actions(events: Iterable[HistoryEvent]) -> int:
    """The Actions of a history, but for its start and for heartbeats."""
    known = list(events)
    markers = {
        event.marker_recorded_event_attributes.workflow_task_completed_event_id
        for event in known
        if event.HasField("marker_recorded_event_attributes")
    }
    return sum(BILLED.get(event.event_type, 0) for event in known) + len(markers)
