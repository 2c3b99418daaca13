"""The JSON form of events: one object each, with its ``type`` and version ``v``.

An event of a later release comes back as an ``UnknownEvent`` and is written out again as it was
read.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from runtime.history.events import Event

_EVENT: TypeAdapter[Event] = TypeAdapter(Event)


def event_to_json(event: Event) -> dict[str, Any]:
    """``event`` as a JSON object, all its fields written out."""
    return event.model_dump(mode="json")


def event_from_json(data: dict[str, Any]) -> Event:
    """The event of a JSON object.

    Raises:
        pydantic.ValidationError: if the object is of a known type and version, and not of its form.
    """
    return _EVENT.validate_python(data)
