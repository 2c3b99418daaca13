"""The descriptors between this process and one that it starts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Starting:
    """What of a start is closed at its end: ``its`` in any case, ``ours`` if it fails."""

    its: ExitStack
    ours: ExitStack

    def pipe(self, *, ours: int) -> tuple[int, int]:
        """A pipe of which this process keeps an end, 0 to read and 1 to write: that, and the other.

        Raises:
            OSError: if the host refuses.
        """
        ends = os.pipe()
        self.its.callback(os.close, ends[1 - ours])
        self.ours.callback(os.close, ends[ours])
        return ends[ours], ends[1 - ours]


@contextmanager
def starting() -> Iterator[Starting]:
    """Within the block a process is started."""
    with ExitStack() as its, ExitStack() as ours:
        yield Starting(its, ours)
        ours.pop_all()
