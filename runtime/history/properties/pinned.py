"""Pinned: the system prompt and the goal, and optionally the user's own messages, are never
dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.history.events import Event, MessageEvent, MessageSource, ShownEvent
from runtime.history.properties.base import Tracker, ViewProperty

HEAD = frozenset({MessageSource.SYSTEM, MessageSource.GOAL})
HEAD_AND_USER = HEAD | {MessageSource.USER}


class _Head(Tracker):
    """Counts the pinned events with which the View begins: nothing may be put before or between
    them.
    """

    def __init__(self, sources: frozenset[MessageSource]) -> None:
        self._sources = sources
        self._length = 0

    def append(self, position: int, event: ShownEvent) -> int:
        """A pinned event of the head takes away every gap before it."""
        if (
            position == self._length
            and type(event) is MessageEvent
            and event.source in self._sources
        ):
            self._length += 1
            # Below every index: the gap before the first event goes as well.
            return -1
        return position

    def truncate(self, position: int) -> None:
        """The head stays: pinned events never leave."""
        self._length = min(self._length, position)


@dataclass(frozen=True)
class Pinned(ViewProperty):
    """Messages of ``sources`` stay for ever.

    At the head of the View the gaps before them are no indices. One that stands further down
    restricts no gap: the events around it may be forgotten, and it stays where it is.
    """

    sources: frozenset[MessageSource] = HEAD

    def tracker(self) -> Tracker:
        """The length of the pinned head."""
        return _Head(HEAD)

    def protects(self, event: ShownEvent) -> bool:
        """Whether ``event`` is a message of a pinned source."""
        return type(event) is MessageEvent and event.source in self.sources

    def enforce(self, events: Sequence[ShownEvent], log: Sequence[Event]) -> frozenset[str]:
        """Nothing: a pinned event that is missing cannot be mended by dropping another.

        See ``missing``.
        """
        return frozenset()

    def missing(self, events: Sequence[ShownEvent], log: Sequence[Event]) -> tuple[str, ...]:
        """The ids of pinned events of ``log`` that ``events`` does not hold.

        Always empty for a View of that log.
        """
        present = {event.id for event in events}
        return tuple(
            event.id
            for event in log
            if type(event) is MessageEvent
            and event.source in self.sources
            and event.id not in present
        )
