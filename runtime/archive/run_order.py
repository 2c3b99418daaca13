"""In which order a job's runs began: as their starts say, and by time where these say nothing."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import unquote


def named_by(start: Mapping[str, Any], prefix: str) -> set[str]:
    """The runs of the job under ``prefix`` that a run's start names: they began before it."""
    parent = start.get("parent")
    named = [*start.get("earlier", {}), *([parent["key"]] if parent else [])]
    own = f"{prefix}/"
    return {unquote(key.removeprefix(own).split("/")[1]) for key in named if key.startswith(own)}


def oldest_first(
    times: Mapping[str, str], named: Mapping[str, Collection[str]]
) -> list[tuple[str, str]]:
    """When each run began (ISO 8601, UTC), and its name: each behind those that it has ``named``.

    Clocks are set back, and those of two hosts differ: a run that is said to have begun before one
    that its start names is told with the time of that. Of runs that name each other, which nobody
    writes, the first by time comes first.
    """
    behind: dict[str, list[str]] = defaultdict(list)
    awaits: dict[str, int] = dict.fromkeys(times, 0)
    for run, others in named.items():
        for other in {*others} & (times.keys() - {run}):
            behind[other].append(run)
            awaits[run] += 1
    told = dict(times)
    ready = [(when, run) for run, when in times.items() if not awaits[run]]
    heapq.heapify(ready)
    ordered: dict[str, str] = {}
    while len(ordered) < len(times):
        if not ready:
            ready.append(min((told[run], run) for run in times if run not in ordered))
        when, run = heapq.heappop(ready)
        if run in ordered:
            continue
        ordered[run] = when
        for other in behind[run]:
            told[other] = max(told[other], when)
            awaits[other] -= 1
            if not awaits[other]:
                heapq.heappush(ready, (told[other], other))
    return [(when, run) for run, when in ordered.items()]
