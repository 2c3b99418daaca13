"""Workers that have died, and those that are merely slow.

A worker holds a lock on a file of its own for as long as its process lives; the kernel lets go of
it, however the process ends. So the other workers of the same state directory know for certain that
one has died, and give what it was doing to others at once. Heartbeats are for workers of other
machines: their limit may be long enough for a busy machine, since a worker that is killed and
started again does not wait for it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

from filelock import FileLock, Timeout
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from runtime.base.home import Home
from runtime.base.workflow_ids import OPEN_JOBS
from runtime.server.authentic import NotSigned
from runtime.server.gathered import gathered

LOOK_SECONDS = 1.0
"""How often workers that have died are looked for."""

MOST_DEATHS = 10
"""So many workers in a row may die in a call of a tool or a command: it may be what kills them."""

_DIED, _KILLED = "WorkerDied", "WorkerKilled"
_HANDS = frozenset({"call_tool", "change_workspace"})

_SUFFIX = ".lock"
_log = logging.getLogger(__name__)


@asynccontextmanager
async def present(client: Client, home: Home) -> AsyncIterator[str]:
    """The identity of a worker that lives for as long as the block, and looks after those that
    died.
    """
    # Process ids come again: a dead worker's file must not pass for this one's.
    identity = f"{os.getpid()}@{socket.gethostname()}-{secrets.token_hex(3)}"
    home.workers.mkdir(mode=0o700, exist_ok=True)
    path = home.workers / f"{identity}{_SUFFIX}"
    new = path.with_suffix(".new")
    with FileLock(new, mode=0o600):
        # It gets its name when it is locked: nobody finds it unlocked while its worker lives.
        new.rename(path)
        looking = asyncio.create_task(_look(client, home))
        try:
            yield identity
        finally:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking
            path.unlink(missing_ok=True)


async def bury(client: Client, home: Home) -> int:
    """Give the activities of workers that have died to others. Returns how many there were.

    Raises:
        RPCError: if the server does not answer.
    """
    given_away = 0
    for path in sorted(home.workers.glob(f"*{_SUFFIX}")):
        # Whoever has the lock is the worker itself, or another that is doing this.
        lock = FileLock(path, mode=0o600)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            continue
        try:
            given_away += await _give_away(client, path.name.removesuffix(_SUFFIX))
            # Only now: if this process dies before, another finds the file and gives the same away
            # again.
            path.unlink(missing_ok=True)
        finally:
            lock.release()
    return given_away


async def _look(client: Client, home: Home) -> None:
    while True:
        try:
            await bury(client, home)
        # Not told louder: what is missed here, late heartbeats tell of as well.
        except (RPCError, OSError) as error:
            _log.debug("looking for workers that have died: %s", error)
        await asyncio.sleep(LOOK_SECONDS)


async def _give_away(client: Client, identity: str) -> int:
    """Have the server try the activities of the worker ``identity`` again.

    Returns how many there were.
    """
    jobs = [(job.id, job.run_id) async for job in client.list_workflows(OPEN_JOBS)]
    return sum(await gathered(lambda job: _give_away_of(client, *job, identity), jobs))


async def _give_away_of(client: Client, job: str, run: str, identity: str) -> int:
    given_away = 0
    try:
        description = await client.get_workflow_handle(job, run_id=run).describe()
        for pending in description.raw_description.pending_activities:
            started = pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
            if started and pending.last_worker_identity == identity:
                error = await _death(client, pending, identity)
                handle = client.get_async_activity_handle(
                    workflow_id=job, run_id=run, activity_id=pending.activity_id
                )
                await handle.fail(error)
                given_away += 1
    except RPCError as error:
        # The job, or the activity, has ended in the meantime.
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
    return given_away


async def _death(client: Client, pending: PendingActivityInfo, identity: str) -> ApplicationError:
    """What the server is told of the worker of an activity: to try it again, mostly."""
    deaths = 1 + await _deaths_before(client, pending)
    if pending.activity_type.name in _HANDS and deaths >= MOST_DEATHS:
        # Tried for ever, it would take all workers from all jobs.
        return ApplicationError(
            f"{deaths} workers in a row died in this call, the last of them {identity}",
            type=_KILLED,
            non_retryable=True,
        )
    # A delay of its own, in place of the retry policy's: nothing is wrong with the call.
    return ApplicationError(
        f"its worker {identity} died",
        deaths,
        type=_DIED,
        next_retry_delay=timedelta(milliseconds=10),
    )


async def _deaths_before(client: Client, pending: PendingActivityInfo) -> int:
    """How many workers in a row had died when the last try of an activity failed."""
    try:
        failed = await client.data_converter.decode_failure(pending.last_failure)
    # Written by none of ours: who has no key may not say how often one died.
    except NotSigned:
        return 0
    if isinstance(failed, ApplicationError) and failed.type == _DIED and failed.details:
        return int(failed.details[0])
    return 0
