"""How often interpreters have ended at one stretch: whether that is chance, or the statement's
doing.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

CRASHES: Final = 2
"""So many processes that end at one place in a row, of themselves, are the statement's doing."""

KILLS: Final = 8
"""The same for those that were killed from outside, or that were gone when they were asked.

What a statement takes is bounded within its process: whoever kills one wants memory for the
machine. A statement that has its process killed all the same does not hold its job for ever.
"""

# A bound for a worker of months; forgetting a count costs a statement one more try.
_KNOWN = 1000

Place = tuple[str, str, int]
"""A seed, a statement, and the number of the stretch."""


class Crashes:
    """The ends of interpreters in a row, by place."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[Place, bool]] = Counter()

    def is_the_statements(self, place: Place, *, killed: bool) -> bool:
        """Count one more, of a process that ended of itself or was ``killed`` from outside; whether
        they are so many that it is the statement's doing.
        """
        if len(self._counts) > _KNOWN:
            self._counts.clear()
        self._counts[place, killed] += 1
        return self._counts[place, killed] >= (KILLS if killed else CRASHES)

    def forget(self, place: Place) -> None:
        """Count anew: a stretch came to its end there, or to a verdict."""
        for killed in (True, False):
            self._counts.pop((place, killed), None)
