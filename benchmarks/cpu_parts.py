"""Where a process spends its processor time, by part: a sampler of all its threads.

A thread of its own looks every few milliseconds at the processor clock of each Python thread and at
what the thread is in. The time since the look before counts to the part whose code stands
innermost, so what a part asks of the standard library counts to the part. Threads that are not
Python's (Temporal's core has its own) are what is left of the process's time.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from types import FrameType

LOOK_SECONDS = 0.004

SWITCH_SECONDS = 0.0002
"""How soon a thread that runs gives way to the sampler. With Python's own 5 ms the sampler would
see threads where they wait, and hardly any where it computes.
"""

NATIVE = "threads that are not Python's (Temporal's core)"
OTHER = "other"


class Sampler:
    """Counts processor seconds by part, from ``start`` to ``stop``.

    ``parts`` are pairs of a part of a file's path and the name of what it belongs to; the first
    that fits counts.
    """

    def __init__(self, parts: Sequence[tuple[str, str]]) -> None:
        self._parts = tuple(parts)
        self._names: dict[str, str | None] = {}
        self._seconds: Counter[str] = Counter()
        self._clocks: dict[int, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="sampler", daemon=True)
        self._process = 0.0

    def start(self) -> None:
        """Begin."""
        sys.setswitchinterval(SWITCH_SECONDS)
        self._process = time.process_time()
        self._look_once(count=False)
        self._thread.start()

    def stop(self) -> dict[str, float]:
        """End, and say how many seconds each part took; the sampler's own are left out."""
        self._ended.set()
        self._thread.join()
        whole = time.process_time() - self._process - self._own
        native = max(whole - sum(self._seconds.values()), 0.0)
        return {**dict(self._seconds.most_common()), NATIVE: native}

    def _look(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            self._look_once(count=True)
        self._own = time.thread_time()

    def _look_once(self, *, count: bool) -> None:
        own = threading.get_ident()
        for ident, frame in sys._current_frames().items():
            if ident == own and count:
                continue
            try:
                clock = time.clock_gettime(time.pthread_getcpuclockid(ident))
            except OSError:
                continue
            used = clock - self._clocks.get(ident, 0.0)
            self._clocks[ident] = clock
            if count and used > 0:
                self._seconds[self._part(frame)] += used

    def _part(self, frame: FrameType | None) -> str:
        while frame is not None:
            file = frame.f_code.co_filename
            if file not in self._names:
                self._names[file] = next((n for path, n in self._parts if path in file), None)
            if (name := self._names[file]) is not None:
                return name
            frame = frame.f_back
        return OTHER
