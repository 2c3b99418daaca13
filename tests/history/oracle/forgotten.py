"""What was forgotten, when, by which condensation, and what stands in its place, from the whole
log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.history.events import Condensation, Event, is_shown
from runtime.history.properties.condensation import effects_of


@dataclass(frozen=True, slots=True)
class Forgotten:
    """One event that left the View: the turn in which it did, the condensation, and its summary's
    id, if it has one.
    """

    event_id: str
    turn: int
    condensation_id: str
    summary_id: str | None


def forgotten_events(log: Sequence[Event]) -> dict[str, Forgotten]:
    """Every event of a recorded log that a condensation forgot, summaries included, by its id, in
    that order.
    """
    effects = effects_of(log)
    shown: set[str] = set()
    gone: dict[str, Forgotten] = {}
    for event in log:
        if is_shown(event):
            shown.add(event.id)
        if type(event) is not Condensation or event.id not in effects:
            continue
        summary_id = event.summary_event_id if event.summary is not None else None
        for event_id in sorted(effects[event.id] & shown - gone.keys()):
            gone[event_id] = Forgotten(event_id, event.turn, event.id, summary_id)
        if summary_id is not None:
            shown.add(summary_id)
    return gone
