"""What the step of a turn records of the context's events (docs/contract/executable-context.md
section 3.3): those since the last call.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from runtime.base.values import Value
from runtime.history.events import BaseEvent

MAX_EVENTS: Final = 500
"""Events that a step records.

A loop may call methods by the thousand: what is beyond is counted.
"""

LEFT_OUT: Final = "left_out"
"""The type of the record that counts those beyond, in place of an id and the rest."""


class SavedHappenings(Value):
    """What a checkpoint has of them: all."""

    happenings: tuple[dict[str, Any], ...] = ()


class Happenings:
    """The context's events since the last model call, as records."""

    MADE_ANEW: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        self._records: list[dict[str, Any]] = []

    def saved(self) -> SavedHappenings:
        """For a checkpoint."""
        return SavedHappenings(happenings=tuple(self._records))

    def restore(self, saved: SavedHappenings) -> None:
        """As it was saved."""
        self._records = list(saved.happenings)

    def add(self, event: BaseEvent) -> None:
        """Record an event, or count it."""
        if len(self._records) < MAX_EVENTS:
            self._records.append(record_of(event))
        elif self._records[-1]["type"] == LEFT_OUT:
            self._records[-1] = {"type": LEFT_OUT, "count": self._records[-1]["count"] + 1}
        else:
            self._records.append({"type": LEFT_OUT, "count": 1})

    def clear(self) -> None:
        """They are archived."""
        self._records.clear()

    @property
    def records(self) -> tuple[dict[str, Any], ...]:
        """The records, in order."""
        return tuple(self._records)

    @property
    def last(self) -> int:
        """How many records there are; for ``since``."""
        return len(self._records)

    def since(self, last: int) -> tuple[str, ...]:
        """The ids of the events that were recorded after there were ``last``."""
        return tuple(record["id"] for record in self._records[last:] if "id" in record)


def record_of(event: BaseEvent) -> dict[str, Any]:
    """An event as a step has it: its id tells the turn, unless the event is of another."""
    told = event.model_dump(mode="json", exclude_defaults=True, exclude={"id", "turn"})
    turn = {} if event.id.partition(".")[0] == str(event.turn) else {"turn": event.turn}
    return {"id": event.id, "type": type(event).model_fields["type"].default, **turn, **told}


def line_of(record: dict[str, Any]) -> str:
    """An event in one line: ``3.2  method_called  view-1.SetLod('1')``."""
    if record["type"] == LEFT_OUT:
        return f"and {record['count']} more events"
    return f"{record['id']}  {record['type']}  {said_of(record)}".rstrip()


def said_of(record: dict[str, Any]) -> str:
    """What an event says beyond its id and type."""
    if record["type"] == LEFT_OUT:
        return f"{record['count']} more"
    match record:
        case {"type": "method_called", "obj_id": obj_id, "method": method}:
            named = [f"{name}={value}" for name, value in record.get("kwargs", {}).items()]
            return f"{obj_id}.{method}({', '.join([*record.get('args', ()), *named])})"
        case {"type": "tick_applied", "obj_id": obj_id, "tick_kind": kind}:
            return f"{obj_id}  {kind}: {record.get('delta', '')}"
        case _:
            subject = record.get("obj_id") or record.get("group_id", "")
            meta = " ".join(
                f"{name}={value}" for name, value in record.get("payload_meta", {}).items()
            )
            return "  ".join(filter(None, [subject, record.get("delta", ""), meta and f"({meta})"]))
