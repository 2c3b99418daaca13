"""Workers that have died, and those that are merely slow.

A worker holds a lock on a file of its own for as long as its process lives; the kernel lets go of
it, however the process ends. So the other workers of the same state directory know for certain that
one has died, and give what it was doing to others at once. Heartbeats are for workers of other
machines: their limit may be long enough for a busy machine, since a worker that is killed and
started again does not wait for it.

A call that kills its worker takes others with it, which nobody can tell from it. So those that die
together again are parted, half of them at a time: the one that does it comes to die alone, and ends
its own job.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import secrets
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from filelock import FileLock, Timeout
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from runtime.base.home import Home
from runtime.base.workflow_ids import OPEN_BATCHES, OPEN_JOBS
from runtime.server.authentic import NotSigned, in_activity, place_of_activity
from runtime.server.gathered import gathered
from runtime.worker.beside import stopped
from runtime.worker.sticky import release

LOOK_SECONDS = 1.0
"""How often workers that have died are looked for."""

MOST_DEATHS = 10
"""So many workers in a row may die in a call that runs others' programs, in the last of them with
no other such call; twice as many whatever was beside it.
"""

APART = timedelta(seconds=60)
"""What the half of such calls waits that died together with others, for the second time or more:
workers are started again within it.
"""

_DIED, _KILLED = "WorkerDied", "WorkerKilled"
_HANDS = frozenset({"call_tool", "change_workspace", "open_workspace", "list_servers"})

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
        try:
            async with attended(client, home):
                yield identity
        finally:
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


@asynccontextmanager
async def attended(client: Client, home: Home) -> AsyncIterator[None]:
    """Look after the workers that died for as long as the block: where others work, all of which a
    call may kill.
    """
    looking = asyncio.create_task(_look(client, home))
    try:
        yield
    finally:
        await stopped(looking)


async def _look(client: Client, home: Home) -> None:
    while True:
        try:
            await bury(client, home)
        # Not told louder: what is missed here, late heartbeats tell of as well.
        except (RPCError, OSError) as error:
            _log.debug("looking for workers that have died: %s", error)
        await asyncio.sleep(LOOK_SECONDS)


@dataclass(frozen=True)
class _Call:
    """An activity that a worker had when it died, the last of so many ``deaths`` in a row."""

    job: str
    run: str
    id: str
    runs_programs: bool
    """Whether it may be what killed its worker."""
    deaths: int


async def _give_away(client: Client, identity: str) -> int:
    """Have the server try the activities of the worker ``identity`` again.

    Returns how many there were.
    """
    jobs = [job async for job in client.list_workflows(OPEN_JOBS)]
    batches = [batch async for batch in client.list_workflows(OPEN_BATCHES)]
    # Before its calls: what follows from those is to wait for nobody.
    try:
        await release(client, [*jobs, *batches], identity)
    # It waits for a while, then; the calls must not.
    except RPCError as error:
        _log.debug("releasing the workflows of %s, which has died: %s", identity, error)
    of_jobs = await gathered(lambda job: _calls_of(client, job.id, job.run_id, identity), jobs)
    calls = [call for one in of_jobs for call in one]
    suspects = _by_deaths([call for call in calls if call.runs_programs])
    later = suspects[max(1, len(suspects) // 2) :]
    alone = len(suspects) == 1

    async def give(call: _Call) -> int:
        return await _fail(client, call, _death(call, identity, alone=alone, waits=call in later))

    return sum(await gathered(give, calls))


def _by_deaths(calls: Sequence[_Call]) -> list[_Call]:
    """Those first in which the most workers died, of equal ones in any order."""
    return sorted(calls, key=lambda call: (-call.deaths, random.random()))


async def _calls_of(client: Client, job: str, run: str, identity: str) -> list[_Call]:
    """What a worker was doing for a job."""
    try:
        description = await client.get_workflow_handle(job, run_id=run).describe()
    except RPCError as error:
        # The job has ended in the meantime.
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return []
    return [
        _Call(
            job,
            run,
            pending.activity_id,
            runs_programs=pending.activity_type.name in _HANDS,
            deaths=1 + await _deaths_before(in_activity(client, job, pending.activity_id), pending),
        )
        for pending in description.raw_description.pending_activities
        if pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
        and pending.last_worker_identity == identity
    ]


async def _fail(client: Client, call: _Call, error: ApplicationError) -> int:
    """Returns how many calls there still were."""
    handle = client.get_async_activity_handle(
        workflow_id=call.job, run_id=call.run, activity_id=call.id
    )
    try:
        await handle.with_context(place_of_activity(client, call.job, call.id)).fail(error)
    except RPCError as gone:
        # The job, or the activity, has ended in the meantime.
        if gone.status is not RPCStatusCode.NOT_FOUND:
            raise
        return 0
    return 1


def _death(call: _Call, identity: str, *, alone: bool, waits: bool) -> ApplicationError:
    """What the server is told of the worker of an activity: to try it again, mostly."""
    if call.runs_programs and call.deaths >= (MOST_DEATHS if alone else 2 * MOST_DEATHS):
        # Tried for ever, it would take all workers from all jobs.
        return ApplicationError(
            f"{call.deaths} workers in a row died in this call, the last of them {identity}",
            type=_KILLED,
            non_retryable=True,
        )
    # A delay of its own, in place of the retry policy's: nothing is wrong with the call.
    return ApplicationError(
        f"its worker {identity} died",
        call.deaths,
        type=_DIED,
        next_retry_delay=APART if waits and call.deaths > 1 else timedelta(milliseconds=10),
    )


async def _deaths_before(converter: DataConverter, pending: PendingActivityInfo) -> int:
    """How many workers in a row had died when the last try of an activity failed."""
    try:
        failed = await converter.decode_failure(pending.last_failure)
    # Written by none of ours: who has no key may not say how often one died.
    except NotSigned:
        return 0
    if isinstance(failed, ApplicationError) and failed.type == _DIED and failed.details:
        return int(failed.details[0])
    return 0
