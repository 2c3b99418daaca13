"""Events, the event log, the View and its properties, condensers.

Pure: no I/O, no clock, no randomness.

``EventLog.append`` is the one way in. ``View`` is what the model is shown of it; ``properties`` are
the rules it keeps; ``condensers`` decide what it forgets.
"""

from runtime.history.content import ContentPart, NodePart, TextPart, plain_text, text_content
from runtime.history.events import (
    Condensation,
    CondensationRequest,
    CondensationSummaryEvent,
    Event,
)
from runtime.history.indices import ManipulationIndices, NoNextIndex
from runtime.history.log import EventLog
from runtime.history.properties import ALL_PROPERTIES, USER_MESSAGES_PINNED, ViewProperty
from runtime.history.view import View

__all__ = [
    "ALL_PROPERTIES",
    "USER_MESSAGES_PINNED",
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
    "View",
    "ViewProperty",
    "plain_text",
    "text_content",
]
