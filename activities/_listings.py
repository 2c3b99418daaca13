"""What a job's MCP servers offered, in the archive: asked once, and looked up ever after."""

from __future__ import annotations

from typing import Any

from activities.record import RunName
from runtime.archive.job import JobArchive
from runtime.archive.recorded import begun_with
from runtime.archive.stores import ObjectStore

LISTINGS = 750_000
"""It is archived as an effect of the first turn of the run that asked, with this number."""


def recorded_listings(store: ObjectStore, source: RunName) -> dict[str, Any] | None:
    """What the record ``source`` began with; None if it asked no server.

    A run that was reset to its first turn begins with what a run before it had asked for.
    """
    return begun_with(JobArchive.of(store, source), source.run, 1, LISTINGS)
