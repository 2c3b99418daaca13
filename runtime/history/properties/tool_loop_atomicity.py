"""ToolLoopAtomicity: what a model does on one stretch of thinking stays with that thinking.

Anthropic rejects a tool loop whose thinking blocks are gone. A loop starts at an action with
thinking blocks and goes on over all following actions and results; the next action with thinking
blocks starts a new loop, anything else ends it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runtime.history.events import ActionEvent, Condensation, Event, ShownEvent, is_result, is_shown
from runtime.history.pairing import pairs_of
from runtime.history.properties.base import Tracker, UnitTracker, ViewProperty
from runtime.history.properties.condensation import effects_of


class _Loops(UnitTracker):
    def append(self, position: int, event: ShownEvent) -> int:
        loop: list[int] | None = None
        if type(event) is ActionEvent and event.thinking_blocks:
            loop = []
        elif self._unit_at and (type(event) is ActionEvent or is_result(event)):
            # What cut a loop has no unit, so what stands behind it is in none either.
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

        Events that no model was ever shown, because they are not well formed, are no part of a
        loop. A condensation ends a loop if it forgets one of its events, or puts its summary behind
        it.
        """
        places = {event.id: place for place, event in enumerate(events)}
        gone: set[str] = set()
        for loop in _loops_of(log, places):
            kept = [event_id for event_id in loop if event_id in places]
            if 0 < len(kept) < len(loop):
                gone.update(kept)
        return frozenset(gone)


def _loops_of(log: Sequence[Event], places: Mapping[str, int]) -> list[list[str]]:
    left_out = pairs_of(log).left_out
    effects = effects_of(log)
    loops: list[list[str]] = []
    going = False
    for event in log:
        if event.id in left_out:
            continue
        if type(event) is Condensation:
            going = going and not (
                event.id in effects and _ends(event, effects[event.id], loops[-1], places)
            )
        elif type(event) is ActionEvent and event.thinking_blocks:
            loops.append([event.id])
            going = True
        elif type(event) is ActionEvent or is_result(event):
            if going:
                loops[-1].append(event.id)
        elif is_shown(event):
            going = False
    return loops


def _ends(
    condensation: Condensation,
    forgotten: frozenset[str],
    loop: Sequence[str],
    places: Mapping[str, int],
) -> bool:
    """Whether a loop that was going on is over after ``condensation``.

    Where the summary went cannot always be told from the log. If it is still in the View, its place
    there tells; if not, the loop counts as ended.
    """
    if forgotten.intersection(loop):
        return True
    if condensation.summary is None:
        return False
    place = places.get(condensation.summary_event_id)
    return place is None or not any(places.get(event_id, -1) > place for event_id in loop)
