"""In which order a job's runs began: as their starts say, and by time where these say nothing."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter
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
    that its start names is told with the time of that. Where runs name each other, which nobody
    writes, all are by time alone.
    """
    before = {
        run: [other for other in named.get(run, ()) if other in times and other != run]
        for run in times
    }
    graph = TopologicalSorter(before)
    try:
        graph.prepare()
    except CycleError:
        return sorted((when, run) for run, when in times.items())
    told: dict[str, str] = {}
    ordered: list[tuple[str, str]] = []
    ready: list[tuple[str, str]] = []
    while graph.is_active():
        for run in graph.get_ready():
            told[run] = max([times[run], *(told[other] for other in before[run])])
            heapq.heappush(ready, (told[run], run))
        ordered.append(heapq.heappop(ready))
        graph.done(ordered[-1][1])
    return ordered
