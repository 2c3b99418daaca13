"""The versions of a job's workspace, turn by turn, as its archive has them."""

from __future__ import annotations

from typing import Any

from runtime.archive.catalog import find_job
from runtime.archive.job import JobArchive
from runtime.archive.recorded import begun_with, turn_record
from runtime.archive.stores.protocol import ObjectStore
from runtime.base.addresses import WORKSPACE_OF
from runtime.base.errors import NotFound
from runtime.base.values import JobKey

OPENING = 0
"""The turn under which the opening of a workspace is archived, as its effect 0."""


def opening_of(archive: JobArchive, run: str) -> dict[str, Any] | None:
    """What a run's workspace began with, or that of the run that it goes back to; None if nobody
    opened one.
    """
    return begun_with(archive, run, OPENING, 0)


def version_after(store: ObjectStore, address: str, batch: str) -> str:
    """The version that a job's workspace was at after a turn (``holdfast://JOB@N``); a job of
    ``batch`` is the nearest that a name can mean.

    Raises:
        NotFound: if there is no such job or turn, or it has no workspace of its own.
    """
    archive, turn = named_workspace(store, address, batch)
    runs = archive.runs()
    if not runs:
        raise NotFound(f"{archive.job} has no version of a workspace: it made no call")
    return workspace_after(archive, runs[-1], turn)


def named_workspace(store: ObjectStore, address: str, batch: str) -> tuple[JobArchive, int]:
    """The job and the turn of such an address.

    Raises:
        NotFound: if there is no such job.
    """
    named = WORKSPACE_OF.fullmatch(address)
    if named is None:
        raise NotFound(f"expected holdfast://JOB@N, got {address!r}")
    name = named["job"]
    near = JobKey(batch=batch, job=name) if "/" not in name else JobKey.named(name)
    key = near if near and JobArchive.of(store, near).runs() else find_job(store, name)
    return JobArchive.of(store, key), int(named["turn"])


def workspace_after(archive: JobArchive, run: str, turn: int) -> str:
    """The version after a turn of a run; turn 0 is before the first.

    Raises:
        NotFound: if there is no such turn, or the job has no workspace of its own.
    """
    record = turn_record(archive, run, max(turn, 1))
    after = record.after if turn else record.step
    version = "" if after is None else after.workspace
    if not version:
        what = "it has not ended" if after is None else "the job has no workspace of its own"
        raise NotFound(f"{archive.prefix}@{turn} has no version of a workspace: {what}")
    return version
