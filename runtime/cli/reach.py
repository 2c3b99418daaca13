"""Reaching a running job by the name that a user gave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from runtime.archive.catalog import find_job
from runtime.archive.stores import ObjectStore
from runtime.base.errors import NotFound, ServerError
from runtime.base.values import JobKey
from runtime.cli.output import note
from runtime.cli.stores import archive_to_control
from runtime.client.control import Control
from runtime.client.waiting import waits
from runtime.server.connection import connect, connect_if_up
from runtime.server.target import Target


async def with_job(
    name: str, target: Target, store: str | None, act: Callable[[Control, JobKey], Awaitable[None]]
) -> JobKey:
    """Do ``act`` with the job called ``name``; returns its name."""
    objects = archive_to_control(store)
    async with connect(target) as connection:
        control = Control(connection.client, objects)
        waiting = await _waiting(control, name)
        key = waiting if waiting is not None else await asyncio.to_thread(_key, objects, name)
        await act(control, key)
    return key


@asynccontextmanager
async def control_in_reach(target: Target, store: ObjectStore) -> AsyncIterator[Control | None]:
    """Whom to ask about open jobs; None, and why is noted, where no server can be reached."""
    async with AsyncExitStack() as stack:
        control = None
        # Around the connecting alone: an error within the block is the caller's.
        try:
            connection = await stack.enter_async_context(connect_if_up(target))
            control = Control(connection.client, store) if connection is not None else None
        except ServerError as error:
            note_unknown(error)
        yield control


def note_unknown(error: ServerError) -> None:
    """Say that open jobs are shown as the archive has them."""
    note(f"whether the open jobs still are is not known: {error}")


async def _waiting(control: Control, name: str) -> JobKey | None:
    """The job of that very name that waits for its place: it is not archived yet, but one whose
    name begins like it may be.
    """
    key = JobKey.named(name)
    return key if key is not None and await waits(control, key) else None


def _key(store: ObjectStore, name: str) -> JobKey:
    """The job's name: as the archive has it, else, written in full, as given: one whose first call
    comes is not archived yet.
    """
    try:
        return find_job(store, name)
    except NotFound:
        if (key := JobKey.named(name)) is None:
            raise
        return key
