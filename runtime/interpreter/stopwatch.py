"""The real clock, for one purpose: how long a live stretch took. Its verdict is made durable, so replay never asks it."""

from __future__ import annotations

import time


class Stopwatch:
    """Runs from its creation."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    @property
    def milliseconds(self) -> int:
        """Milliseconds since it was created."""
        return int((time.monotonic() - self._start) * 1000)
