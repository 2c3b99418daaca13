"""A new property is a class more in the list; and what the View's upkeep costs, counted in calls,
not in time.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from history_builders import action, forget, ids, message, result

from runtime.history.events import Event, MessageEvent, MessageSource, RepairReason, ShownEvent
from runtime.history.log import EventLog
from runtime.history.properties import ALL_PROPERTIES, Tracker, ViewProperty
from runtime.history.properties.base import UnitTracker
from runtime.history.view import View


class _Reminders(UnitTracker):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def append(self, position: int, event: ShownEvent) -> int:
        self.calls += 1
        before = self._unit_at[-1] if self._unit_at else None
        joins = before is not None and len(before) == 1
        reminder = isinstance(event, MessageEvent) and event.source is MessageSource.FRAMEWORK
        unit = before if joins else [] if reminder else None
        self._unit_at.append(unit)
        if unit is None:
            return position
        unit.append(position)
        return unit[0]


class ReminderAtomicity(ViewProperty):
    """A framework's reminder goes together with the event behind it."""

    def __init__(self) -> None:
        self.made: list[_Reminders] = []

    def tracker(self) -> Tracker:
        self.made.append(_Reminders())
        return self.made[-1]

    def enforce(self, events: Sequence[ShownEvent], log: Sequence[Event]) -> frozenset[str]:
        return frozenset()


def test_a_new_property_takes_part_in_indices_and_condensations() -> None:
    """Its gaps are out of the View's indices, and a condensation of half a unit is widened to the
    whole.
    """
    events = [message("R", "framework"), message("U1"), message("U2")]
    assert ReminderAtomicity().manipulation_indices(events) == {0, 2, 3}
    log = EventLog.from_events(events, (*ALL_PROPERTIES, ReminderAtomicity()))
    assert log.view.manipulation_indices == {0, 2, 3}
    (repair,) = log.append(forget("c", ["U1"]))
    assert (repair.reason, repair.event_ids) == (RepairReason.WIDENED, ("R",))
    assert ids(log.view) == ["U2"]


def test_each_append_is_one_step_and_a_condensation_touches_only_what_is_behind_it() -> None:
    """A thousand sound events are a thousand steps; a condensation near the end takes in only the
    end again.
    """
    rule = ReminderAtomicity()
    view = View((*ALL_PROPERTIES, rule))
    for n in range(500):
        view.append_event(action(f"A{n}", f"r{n}", f"t{n}", thinking=True))
        view.append_event(result(f"O{n}", f"t{n}"))
    (tracker,) = rule.made
    assert tracker.calls == 1000
    view.append_event(forget("c", ["A490", "O490"]))
    assert tracker.calls == 1000 + 18


@pytest.mark.slow
def test_nothing_is_recursive() -> None:
    """Twenty thousand events, one loop or none: made, searched, condensed as a whole and thrown
    away.
    """
    for thinking in (False, True):
        view = View()
        for n in range(10_000):
            view.append_event(action(f"A{n}", f"r{n}", f"t{n}", thinking=thinking and n == 0))
            view.append_event(result(f"O{n}", f"t{n}"))
        indices = view.manipulation_indices
        assert len(indices) == (2 if thinking else 10_001) and indices.find_next(1) == (
            20_000 if thinking else 2
        )
        assert view.append_event(forget("c", view.forgettable(0, 20_000), "all")) == ()
        assert ids(view) == ["c-summary"]
