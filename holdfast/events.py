"""The events of a job's history, the log that takes them, and the View that the model is shown of
it. Needs pydantic alone.
"""

from runtime.history import (
    ALL_PROPERTIES,
    Condensation,
    CondensationRequest,
    CondensationSummaryEvent,
    Event,
    EventLog,
    TextPart,
    View,
    ViewProperty,
    plain_text,
    text_content,
)
from runtime.history.events import (
    ActionEvent,
    AgentErrorEvent,
    HistoryRepaired,
    MessageEvent,
    MessageSource,
    ObservationEvent,
    RequestSource,
    UserRejectObservation,
)

__all__ = [
    "ALL_PROPERTIES",
    "ActionEvent",
    "AgentErrorEvent",
    "Condensation",
    "CondensationRequest",
    "CondensationSummaryEvent",
    "Event",
    "EventLog",
    "HistoryRepaired",
    "MessageEvent",
    "MessageSource",
    "ObservationEvent",
    "RequestSource",
    "TextPart",
    "UserRejectObservation",
    "View",
    "ViewProperty",
    "plain_text",
    "text_content",
]
