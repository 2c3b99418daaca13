"""What the step of a turn has of the context's events (docs/contract/executable-context.md
section 3.3): those since the last call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from runtime.base.values import Value
from runtime.base.visible import escaped

if TYPE_CHECKING:
    # Commands that print what is archived have no use for the room.
    from runtime.history.events import BaseEvent

MAX_EVENTS: Final = 500
"""Events that a step has.

A loop may call methods by the thousand: what is beyond is counted.
"""

LEFT_OUT: Final = "left_out"
"""The type of the event that counts those beyond, in place of an id and the rest."""


class SavedHappenings(Value):
    """What a checkpoint has of them: all."""

    happenings: tuple[dict[str, Any], ...] = ()


class Happenings:
    """The context's events since the last model call, as a step has them."""

    MADE_ANEW: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []

    def saved(self) -> SavedHappenings:
        """For a checkpoint."""
        return SavedHappenings(happenings=tuple(self._events))

    def restore(self, saved: SavedHappenings) -> None:
        """As it was saved."""
        self._events = list(saved.happenings)

    def add(self, event: BaseEvent) -> None:
        """Record an event, or count it."""
        if len(self._events) < MAX_EVENTS:
            self._events.append(stored_event(event))
        elif self._events[-1]["type"] == LEFT_OUT:
            self._events[-1] = {"type": LEFT_OUT, "count": self._events[-1]["count"] + 1}
        else:
            self._events.append({"type": LEFT_OUT, "count": 1})

    def clear(self) -> None:
        """They are archived."""
        self._events.clear()

    @property
    def events(self) -> tuple[dict[str, Any], ...]:
        """All of them, in order."""
        return tuple(self._events)

    @property
    def last(self) -> int:
        """How many there are; for ``since``."""
        return len(self._events)

    def since(self, last: int) -> tuple[str, ...]:
        """The ids of the events that came after there were ``last``."""
        return tuple(event["id"] for event in self._events[last:] if "id" in event)


def stored_event(event: BaseEvent) -> dict[str, Any]:
    """An event as a step has it: its id tells the turn, unless the event is of another."""
    told = event.model_dump(mode="json", exclude_defaults=True, exclude={"id", "turn"})
    turn = {} if event.id.partition(".")[0] == str(event.turn) else {"turn": event.turn}
    return {"id": event.id, "type": type(event).model_fields["type"].default, **turn, **told}


def line_of(event: dict[str, Any]) -> str:
    """An event in one line, whatever a job names: ``3.2  method_called  view-1.SetLod('1')``."""
    if event["type"] == LEFT_OUT:
        return f"and {event['count']} more events"
    return escaped(f"{event['id']}  {event['type']}  {said_of(event)}".rstrip())


def said_of(event: dict[str, Any]) -> str:
    """What an event says beyond its id and type."""
    if event["type"] == LEFT_OUT:
        return f"{event['count']} more"
    match event:
        case {"type": "method_called", "obj_id": obj_id, "method": method}:
            # As a record has them: canonical JSON keeps no order of names.
            named = [f"{name}={value}" for name, value in sorted(event.get("kwargs", {}).items())]
            return f"{obj_id}.{method}({', '.join([*event.get('args', ()), *named])})"
        case {"type": "tick_applied", "obj_id": obj_id, "tick_kind": kind}:
            return f"{obj_id}  {kind}: {event.get('delta', '')}"
        case _:
            subject = event.get("obj_id") or event.get("group_id", "")
            meta = " ".join(
                f"{name}={value}" for name, value in event.get("payload_meta", {}).items()
            )
            return "  ".join(filter(None, [subject, event.get("delta", ""), meta and f"({meta})"]))
