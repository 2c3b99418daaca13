"""BatchAtomicity: the actions of one model reply are in the View together or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from runtime.history.events import ActionEvent, Event, ShownEvent
from runtime.history.pairing import pairs_of
from runtime.history.properties.base import Tracker, UnitTracker, ViewProperty


class _Batches(UnitTracker):
    def __init__(self) -> None:
        super().__init__()
        self._batches: dict[str, list[int]] = {}

    def append(self, position: int, event: ShownEvent) -> int:
        if type(event) is not ActionEvent:
            self._unit_at.append(None)
            return position
        batch = self._batches.get(event.llm_response_id)
        if batch is None:
            batch = self._batches[event.llm_response_id] = []
        batch.append(position)
        self._unit_at.append(batch)
        return batch[0]


class BatchAtomicity(ViewProperty):
    """A batch reaches from its first to its last action, other events between included."""

    def tracker(self) -> Tracker:
        """Batches by response id."""
        return _Batches()

    def enforce(self, events: Sequence[ShownEvent], log: Sequence[Event]) -> frozenset[str]:
        # They are in no View, so a batch is whole without them.
        """The actions of every batch that is only partly in the View.

        An action that repeats a call is no member.
        """
        duplicates = pairs_of(log).duplicates
        batches: dict[str, list[str]] = {}
        for event in log:
            if type(event) is ActionEvent and event.id not in duplicates:
                batches.setdefault(event.llm_response_id, []).append(event.id)
        present = {event.id for event in events}
        return frozenset(
            event_id
            for batch in batches.values()
            if not present.issuperset(batch)
            for event_id in batch
            if event_id in present
        )
