"""CondensationProperty: what was forgotten stays out of the View, and a summary stays until it is
named itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.history.events import (
    Condensation,
    Event,
    HistoryRepaired,
    RepairReason,
    ShownEvent,
    is_shown,
)
from runtime.history.properties.base import FreeTracker, Tracker, ViewProperty

REJECTIONS = frozenset(reason for reason in RepairReason if reason.value.startswith("rejected_"))


class CondensationProperty(ViewProperty):
    """Condensations take effect in the order of the log, on the events before them.

    They restrict no gap.
    """

    def tracker(self) -> Tracker:
        """Nothing to keep: forgetting happens in the View."""
        return FreeTracker()

    def enforce(self, events: Sequence[ShownEvent], log: Sequence[Event]) -> frozenset[str]:
        """Events that were forgotten and are still there, and summaries of which no condensation
        knows.

        A condensation that the log records as rejected has no effect; pinned events that it names
        are kept.
        """
        effects = effects_of(log)
        known: set[str] = set()
        forgotten: set[str] = set()
        for event in log:
            if is_shown(event):
                known.add(event.id)
            if type(event) is not Condensation or event.id not in effects:
                continue
            forgotten |= known & effects[event.id]
            if event.summary is not None:
                known.add(event.summary_event_id)
        return frozenset(
            event.id
            for event in events
            if event.id in forgotten or event.id not in known or not is_shown(event)
        )


def effects_of(log: Sequence[Event]) -> dict[str, frozenset[str]]:
    """What each condensation of a recorded log forgot: what it named and what was added, without
    what was kept.

    Condensations that the log records as rejected are not in it.
    """
    effects = {e.id: frozenset(e.forgotten_event_ids) for e in log if type(e) is Condensation}
    for event in log:
        # By what was recorded, not by today's rules: an audit asks what took effect then.
        if type(event) is not HistoryRepaired or event.cause not in effects:
            continue
        if event.reason in REJECTIONS:
            del effects[event.cause]
        elif event.reason is RepairReason.PINNED_KEPT:
            effects[event.cause] -= frozenset(event.event_ids)
        elif event.reason is RepairReason.WIDENED:
            effects[event.cause] |= frozenset(event.event_ids)
    return effects
