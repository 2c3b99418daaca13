"""The ends of a batch's jobs, for whoever watches: how many there were, and the last of them."""

from __future__ import annotations

from collections import deque
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from workflows.messages import BatchCarried, BatchEnd

TOLD, CARRIED_TOLD, NEWS = 1_000, 200, 200
"""Ends that are remembered, those that the next run is told of, and those in one answer."""


class Ends:
    """The ends of the runs of one batch's jobs. ``count`` is how many there were."""

    def __init__(self, carried: BatchCarried) -> None:
        self.count = carried.ends
        self._told: deque[BatchEnd] = deque(carried.told, maxlen=TOLD)

    @property
    def carried(self) -> dict[str, Any]:
        """What the next run of the batch needs, as fields of ``BatchCarried``."""
        return {"ends": self.count, "told": tuple(self._told)[-CARRIED_TOLD:]}

    def add(self, end: BatchEnd) -> None:
        """A run of a job has ended."""
        self.count += 1
        self._told.append(end)

    def after(self, known: int) -> tuple[int, tuple[BatchEnd, ...]]:
        """The ends after the first ``known`` ones, as many as one answer has, and the number of
        the first of them: it is more than ``known`` where others are forgotten.
        """
        forgotten = self.count - len(self._told)
        first = max(known, forgotten)
        start = first - forgotten
        return first, tuple(self._told)[start : start + NEWS]
