"""The event log: the append-only list of all that happened in a job, and its one write path.

``append`` updates the View in the same call, and nothing that could be changed is handed out, so
there is no second list that someone could forget to update.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn, overload

from runtime.history.events import Event, HistoryRepaired, ShownEvent
from runtime.history.properties import ALL_PROPERTIES, ViewProperty
from runtime.history.sequence import Prefix
from runtime.history.view import Repairs, View


class LogView(View):
    """The View of a log. Only the log can append to it."""

    def append_event(self, event: Event) -> NoReturn:
        """Refused.

        Raises:
            TypeError: always; append to the log.
        """
        raise TypeError("this View belongs to an event log: append to the log")


class EventLog(Sequence[Event]):
    """All events of a job, in order."""

    def __init__(self, properties: Sequence[ViewProperty] = ALL_PROPERTIES) -> None:
        self._events: list[Event] = []
        self._by_id: dict[str, Event] = {}
        self._view = LogView(properties)

    @classmethod
    def from_events(
        cls, events: Iterable[Event], properties: Sequence[ViewProperty] = ALL_PROPERTIES
    ) -> EventLog:
        """A log restored from its own recorded events, repairs included, or made from events that
        have none.
        """
        log = cls(properties)
        for event in events:
            log.append(event)
        return log

    @classmethod
    def resumed(
        cls,
        shown: Iterable[ShownEvent],
        *,
        unhandled_request: bool,
        properties: Sequence[ViewProperty],
    ) -> EventLog:
        """A log that goes on from a checkpoint: it begins with the events that the View showed
        there, in its order.

        What was not shown is in the log before the checkpoint, and not in this one. ``shown`` is a
        sound View in which no call waits for its result.
        """
        log = cls(properties)
        log._view._resume(shown, unhandled_request=unhandled_request)
        log._events = list(log._view)
        log._by_id = {event.id: event for event in log._events}
        return log

    def append(self, event: Event) -> Repairs:
        """Add ``event``, and behind it what the View reports of it, and update the View.

        An event that is in the log already, the same in all its parts, is not added again, nor is a
        repair that this log has made itself: a log restored from its own events holds them once.

        Returns:
            The repairs that were recorded; empty for a sound event.

        Raises:
            ValueError: if another event of the log has the same id.
        """
        known = self._by_id.get(event.id)
        if known is not None:
            # A repair has its id from its cause: what was recorded may be worded as an earlier
            # release worded it.
            if known == event or (type(known) is type(event) is HistoryRepaired):
                return ()
            raise ValueError(f"the log holds another event with the id {event.id!r}")
        # The View first: if it raises, the log does not hold an event that its View has not seen.
        repairs = self._view._extend(event)
        for added in (event, *repairs):
            self._events.append(added)
            self._by_id[added.id] = added
            self._view._known.add(added.id)
        return repairs

    @property
    def view(self) -> LogView:
        """The live View: it follows every append, and cannot be appended to by itself."""
        return self._view

    @property
    def events(self) -> Prefix[Event]:
        """All events so far: a read-only sequence that later appends do not change."""
        return Prefix(self._events, len(self._events))

    def find(self, event_id: str) -> Event | None:
        """The event with this id, if the log has it."""
        return self._by_id.get(event_id)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        return self._events[index]

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)
