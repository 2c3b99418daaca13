"""ToolLoopAtomicity: what a model does on one stretch of thinking stays with that thinking.

Anthropic rejects a tool loop whose thinking blocks are gone. A loop starts at an action with thinking blocks and goes
on over all following actions and results; the next action with thinking blocks starts a new loop, anything else ends it.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.history.events import ActionEvent, Condensation, Event, ShownEvent, is_result, is_shown
from runtime.history.pairing import pairs_of
from runtime.history.properties.base import Tracker, UnitTracker, ViewProperty


class _Loops(UnitTracker):
    def append(self, position: int, event: ShownEvent) -> int:
        loop: list[int] | None = None
        if type(event) is ActionEvent and event.thinking_blocks:
            loop = []
        elif self._unit_at and (type(event) is ActionEvent or is_result(event)):
            loop = self._unit_at[-1]
        self._unit_at.append(loop)
        if loop is None:
            return position
        loop.append(position)
        return loop[0]


class ToolLoopAtomicity(ViewProperty):
    """A tool loop is in the View as a whole or not at all."""

    def tracker(self) -> Tracker:
        """The loop that is still going on, and all before it."""
        return _Loops()

    def enforce(self, events: Sequence[ShownEvent], log: Sequence[Event]) -> frozenset[str]:
        """The events of every loop that is only partly in the View.

        Events that no model was ever shown, because they are not well formed, are no part of a loop; a condensation
        that names one of its events ends it.
        """
        present = {event.id for event in events}
        gone: set[str] = set()
        left_out = pairs_of(log).left_out
        for loop in _loops_of([event for event in log if event.id not in left_out]):
            kept = present.intersection(loop)
            if 0 < len(kept) < len(loop):
                gone |= kept
        return frozenset(gone)


def _loops_of(log: Sequence[Event]) -> list[list[str]]:
    loops: list[list[str]] = []
    going = False
    for event in log:
        if type(event) is Condensation:
            going = going and not set(loops[-1]).intersection(event.forgotten_event_ids)
        elif type(event) is ActionEvent and event.thinking_blocks:
            loops.append([event.id])
            going = True
        elif not is_shown(event):
            continue
        elif type(event) is ActionEvent or is_result(event):
            if going:
                loops[-1].append(event.id)
        else:
            going = False
    return loops
