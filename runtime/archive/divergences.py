"""The divergences of a replayed timeline, as its steps hold them beside the executions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runtime.archive.job import JobArchive
from runtime.archive.replays import Replay, replays
from runtime.job.divergence import Divergence


def replay_of(archive: JobArchive, run: str) -> Replay | None:
    """The replay that ``run`` is, or goes on with as another run of it; None if there was none."""
    claimed = {replay.run: replay for replay in replays(archive) if replay.run is not None}
    # The newest claim wins: a replay of a replay is told of its own order.
    for span in reversed(archive.lineage.spans(run)):
        if span.run in claimed:
            return claimed[span.run]
    return None


def divergences(archive: JobArchive, run: str) -> list[Divergence]:
    """What the replay found that ``run`` is or belongs to, in the order of statements, causes
    before what they cause.
    """
    order = replay_of(archive, run)
    start = int(order.order.get("start", 1)) if order is not None else 1
    return [
        divergence
        for execution in _executions(archive, run, start)
        for divergence in map(Divergence.model_validate, execution.get("divergences", ()))
        if divergence.turn >= start
    ]


def _executions(archive: JobArchive, run: str, start: int) -> Iterator[dict[str, Any]]:
    """The executions that were recorded from turn ``start`` on, the run's end last."""
    for step in archive.steps(run):
        if step.turn >= start and step.execution is not None:
            yield step.execution
    end = archive.end(run)
    if end is not None and end.execution is not None:
        yield end.execution
