"""What a job's MCP servers offered, in the archive: asked once, and looked up ever after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from activities.record import RunName
from runtime.archive import keys
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore

LISTINGS = 750_000
"""It is archived as an effect of the first turn of the run that asked, with this number."""


def recorded_listings(store: ObjectStore, source: RunName) -> dict[str, Any] | None:
    """What the record ``source`` began with; None if it asked no server.

    A run that was reset to its first turn begins with what a run before it had asked for.
    """
    for archive, run in _runs_before(store, source):
        if (found := archive.effect(run, 1, LISTINGS)) is not None:
            return found
    return None


def _runs_before(store: ObjectStore, source: RunName) -> Iterator[tuple[JobArchive, str]]:
    """The runs that a run goes back to, each with those of its job before it, the newest first."""
    for span in JobArchive.of(store, source).lineage.spans(source.run):
        job, _, name = span.prefix.removesuffix("/").partition("/turns/")
        archive, run = JobArchive.of(store, keys.job_of(job)), unquote(name)
        runs = [one for one in archive.runs() if not keys.is_side_run(one)]
        until = runs.index(run) + 1 if run in runs else len(runs)
        for earlier in reversed(runs[:until]):
            yield archive, earlier
