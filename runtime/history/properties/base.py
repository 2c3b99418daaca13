"""What a property of the View is, and the incremental form in which the View uses it.

A property groups events into *units*: events that are in the View together or not at all. The gaps
inside a unit's extent are no manipulation indices of the property. ``manipulation_indices`` and
``enforce`` state it for any list of events; a ``Tracker`` does the same work one event at a time,
which is how the View stays right at constant cost.
Source: docs/contract/view-properties.md and issue 3, whose table settles where the document
    contradicts itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from runtime.history.events import Event, ShownEvent
from runtime.history.indices import BOTTOM, IndexNode, ManipulationIndices


class Tracker(ABC):
    """The state of one property over the events of one View, kept up to date as events come and go
    at the end.

    ``blocked`` is true while no gap from here on is safe, because something that is in the View is
    not complete.
    """

    blocked: bool = False

    @abstractmethod
    def append(self, position: int, event: ShownEvent) -> int:
        """Take in the event at ``position``, the end of the View.

        Returns:
            The position of the first event of the atomic range that now reaches to this event;
            ``position`` itself if it stands alone. Every gap after the returned position and up to
            ``position`` is no index any more.
        """

    @abstractmethod
    def truncate(self, position: int) -> None:
        """Forget the events from ``position`` on.

        ``position`` is always a manipulation index of the View.
        """

    def unit(self, position: int) -> Sequence[int]:
        """The positions of the events that must leave the View together with the one at
        ``position``.
        """
        return (position,)


class FreeTracker(Tracker):
    """The tracker of a property that restricts no gap."""

    def append(self, position: int, event: ShownEvent) -> int:
        """Every event stands alone."""
        return position

    def truncate(self, position: int) -> None:
        """Nothing is kept."""


class UnitTracker(Tracker):
    """A tracker whose units are lists of positions; ``append`` puts the new event's unit, or
    ``None``, at the end.
    """

    def __init__(self) -> None:
        self._unit_at: list[list[int] | None] = []

    def truncate(self, position: int) -> None:
        """Take the events from ``position`` on out of their units."""
        while len(self._unit_at) > position:
            unit = self._unit_at.pop()
            # Positions in a unit ascend, and the highest go first: so it is the last one.
            if unit is not None:
                unit.pop()

    def unit(self, position: int) -> Sequence[int]:
        """All positions of the unit."""
        return self._unit_at[position] or (position,)


class ViewProperty(ABC):
    """A rule that every View keeps."""

    @abstractmethod
    def tracker(self) -> Tracker:
        """The property's incremental form, for an empty View."""

    @abstractmethod
    def enforce(self, events: Sequence[ShownEvent], log: Sequence[Event]) -> frozenset[str]:
        """The ids of the events that must leave a View of ``events``, because the property does not
        hold with them.

        ``log`` holds all events of the job, in order: a unit is complete or not by what the log
        knows of it. An empty set means that the property accepts the View.
        """

    def protects(self, event: ShownEvent) -> bool:
        """Whether no condensation may drop ``event``."""
        return False

    def manipulation_indices(self, events: Sequence[ShownEvent]) -> ManipulationIndices:
        """The property's own indices over ``events``.

        Never raises, whatever the order of the events.
        """
        return ManipulationIndices.of_stack(stack_of((self.tracker(),), events))


def push(
    stack: IndexNode, trackers: Sequence[Tracker], position: int, event: ShownEvent
) -> IndexNode:
    """The stack of indices after ``event`` was appended at ``position``: constant time, over many
    events.
    """
    start = position
    blocked = False
    for tracker in trackers:
        first = tracker.append(position, event)
        if first < start:
            start = first
        if tracker.blocked:
            blocked = True
    while stack.depth and stack.index > start:
        stack = stack.below
    return stack if blocked else IndexNode(position + 1, stack)


def stack_of(trackers: Sequence[Tracker], events: Sequence[ShownEvent]) -> IndexNode:
    """The stack of the indices on which all ``trackers`` agree, for ``events`` from the first."""
    stack = IndexNode(0, BOTTOM)
    for position, event in enumerate(events):
        stack = push(stack, trackers, position, event)
    return stack
