"""Where a process spends its processor time, by part: Python's profiler in each thread that works.

A function of a part counts to it, and so does what it asks of the standard library and of builtins,
in proportion to how long that took when it asked. The profiler makes Python's calls dearer and what
is done in C is told as it is, so the parts are shares, not times. Threads that are not Python's
(Temporal's core has its own) are what is left of the process's time.
"""

from __future__ import annotations

import concurrent.futures.thread as pools
import cProfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

NATIVE = "threads that are not Python's (Temporal's core)"
OTHER = "other"

_ROUNDS = 12
"""Calls of the standard library within itself, from a part down, that are followed."""

_WAITING = "<method 'get' of '_queue.SimpleQueue' objects>"
"""Where a pool's thread waits for work."""

_Edges = dict[Any, dict[Any, float]]


class Profiler:
    """Counts processor seconds by part, from ``start`` to ``stop``, which belong to one thread.

    ``parts`` are pairs of a part of a file's path and the name of what it belongs to; the first
    that fits counts.
    """

    def __init__(self, parts: Sequence[tuple[str, str]]) -> None:
        self._parts = tuple(parts)
        self._profiles: dict[int, cProfile.Profile] = {}
        self._run: Callable[[Any], None] = pools._WorkItem.run
        self._process = 0.0

    def start(self) -> None:
        """Begin, in this thread and in those of pools."""
        self._process = time.process_time()
        real = self._run

        def run(item: Any) -> None:
            # A profile sees the thread in which it was begun, so each pool's thread begins its own.
            if threading.get_ident() not in self._profiles:
                self._begin()
            real(item)

        pools._WorkItem.run = run  # type: ignore[method-assign]
        self._begin()

    def stop(self) -> dict[str, float]:
        """End, and say how many seconds each part took."""
        pools._WorkItem.run = self._run  # type: ignore[method-assign]
        self._profiles[threading.get_ident()].disable()
        whole = time.process_time() - self._process
        entries = [e for profile in self._profiles.values() for e in profile.getstats()]
        seconds = self._by_part(entries)
        native = max(whole - sum(seconds.values()), 0.0)
        return {**dict(Counter(seconds).most_common()), NATIVE: native}

    def _begin(self) -> None:
        # By the thread's processor time: a wait is no work.
        profile = cProfile.Profile(time.thread_time)
        self._profiles[threading.get_ident()] = profile
        profile.enable()

    def _by_part(self, entries: Iterable[Any]) -> dict[str, float]:
        own: dict[Any, float] = defaultdict(float)
        callers: _Edges = defaultdict(lambda: defaultdict(float))
        for entry in entries:
            if entry.code != _WAITING:
                own[entry.code] += entry.inlinetime
            for called in entry.calls or ():
                # A call that took no time tells its caller all the same.
                callers[called.code][entry.code] += called.inlinetime + 1e-9
        shares = self._shares(own, callers)
        seconds: dict[str, float] = defaultdict(float)
        for code, time_in in own.items():
            for part, share in shares[code].items():
                seconds[part] += time_in * share
        return dict(seconds)

    def _shares(self, codes: Iterable[Any], callers: _Edges) -> Mapping[Any, Mapping[str, float]]:
        """The parts to which the time in each function counts, with their shares."""
        known = {code: self._part(code) for code in codes}
        shares: dict[Any, dict[str, float]] = {
            code: {part or OTHER: 1.0} for code, part in known.items()
        }
        open_ones = [code for code, part in known.items() if part is None and callers[code]]
        for _ in range(_ROUNDS):
            shares |= {code: _mixed(callers[code], shares) for code in open_ones}
        return shares

    def _part(self, code: Any) -> str | None:
        file = getattr(code, "co_filename", "")
        return next((name for path, name in self._parts if path in file), None)


def _mixed(
    weights: Mapping[Any, float], shares: Mapping[Any, Mapping[str, float]]
) -> dict[str, float]:
    whole, mixed = sum(weights.values()), defaultdict[str, float](float)
    for caller, weight in weights.items():
        for part, share in shares.get(caller, {OTHER: 1.0}).items():
            mixed[part] += share * weight / whole
    return dict(mixed)
