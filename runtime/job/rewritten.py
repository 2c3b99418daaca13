"""Which events change what a view shows, and the words in which ``holdfast diff`` names them as the
cause of a rewrite.
"""

from __future__ import annotations

from collections.abc import Callable

from runtime.history.events import (
    AsyncPayloadApplied,
    BaseEvent,
    MethodCalled,
    NodeChanged,
    TickApplied,
)

_SHOWN_OTHERWISE = frozenset({"SetLod", "SetTokens", "SetPos", "Scroll", "Refresh"})
"""Methods after which a view shows something else. Others change whether and when it is read."""

_OF_THE_SOURCE = ("its source", "readable", "by turn ")
"""What the line of an event has that tells of the source.

Ticks also carry out what a method asked for: then that is the cause.
"""


def cause_in(event: BaseEvent, name: Callable[[str], str]) -> tuple[str, int, str] | None:
    """The node that shows something else after the event, the turn, and what it was; None if no
    node does.
    """
    match event:
        case MethodCalled() if (
            event.method in _SHOWN_OTHERWISE and event.before_digest != event.after_digest
        ):
            return event.obj_id, event.turn, f"{name(event.obj_id)}.{event.method}"
        case AsyncPayloadApplied():
            return event.obj_id, event.turn, f"{name(event.obj_id)}, prepared in the background"
        case TickApplied() | NodeChanged() if any(words in event.delta for words in _OF_THE_SOURCE):
            return event.obj_id, event.turn, f"{name(event.obj_id)}, {event.delta}"
        case _:
            return None
