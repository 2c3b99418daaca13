"""Reaching a running job by the name that a user gave."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from activities.contracts import JobKey
from runtime.archive.stores import ObjectStore
from runtime.catalog import find_job
from runtime.cli.stores import archive_of
from runtime.connection import Target, connect
from runtime.control import Control
from runtime.errors import NotFound


async def with_job(
    given: str, target: Target, store: str | None, act: Callable[[Control, JobKey], Awaitable[None]]
) -> JobKey:
    """Do ``act`` with the job that ``given`` names; returns its name."""
    objects = archive_of(store)
    key = _key(objects, given)
    async with connect(target) as connection:
        await act(Control(connection.client, objects), key)
    return key


def _key(store: ObjectStore, given: str) -> JobKey:
    """The job's name: as the archive has it, else, written in full, as given: a job that waits is not archived yet."""
    try:
        name = find_job(store, given)
    except NotFound:
        batch, slash, job = given.partition("/")
        if not (batch and slash and job):
            raise
        return JobKey(batch=batch, job=job)
    return JobKey(batch=name.batch, job=name.job)
