"""``holdfast run`` from the checked jobs file to the exit code: workers, in this process or in a
crew's, and a client that watches.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from runtime.archive.catalog import archive_id
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore, folder_of
from runtime.base.collector import loading
from runtime.base.errors import HoldfastError, InputError, ObjectCorrupt
from runtime.base.home import state_home
from runtime.base.plurals import counted
from runtime.base.spec.models import BatchSpec, JobSpec
from runtime.base.values import JobKey
from runtime.cli.disks import tell_of_full_disks
from runtime.cli.exit_codes import INTERRUPTED, exit_code
from runtime.cli.interrupts import Interrupts
from runtime.cli.lost_archive import check_is_there, tell_of_a_lost_archive
from runtime.cli.output import note
from runtime.cli.reporters import Reporter
from runtime.cli.stores import archive_of
from runtime.cli.summary import Seen, summary
from runtime.cli.telemetry import metrics_address
from runtime.cli.working import Workers, crew_of
from runtime.client.coming import goes_on, with_those_to_come
from runtime.client.control import Control
from runtime.client.lost import refuse_lost, unasked_plan
from runtime.client.planning import plan_batch
from runtime.client.plans import Plan, Start
from runtime.client.restarts import through_restarts
from runtime.client.submission import plan_queues, submit
from runtime.client.watch import Ended, Retried, Silent, Watch, until_told
from runtime.server.connection import Connection, connect, connect_if_up
from runtime.server.target import Target
from runtime.worker.beside import beside
from runtime.worker.crew import JOBS_EACH, Crew, fitting_size
from runtime.worker.presence import attended
from workflows.messages import batch_queue

Answer = TypeVar("Answer")

_LOOKED_AT = 4
"""So many of a batch's jobs tell whether there will be work to do."""


class Lost(Enum):
    """What is done with jobs that the archive has open and Temporal does not know."""

    REFUSED = "refused"
    RESUMED = "from the archive"
    ANEW = "anew"


@dataclass(frozen=True)
class Request:
    """What the user asked for. ``again`` is the command that resumes it."""

    batch: BatchSpec
    target: Target
    rerun_failed: bool
    again: str
    lost: Lost = Lost.REFUSED
    workers: int | None = None
    """In how many processes jobs are worked on; 0: in this one; None: in as many as pay."""

    @property
    def rerun(self) -> str:
        """The command that starts the jobs anew that ended without success."""
        return f"{self.again} --rerun-failed"


async def run_batch(request: Request, reporter: Reporter) -> int:
    """Run or resume a batch; returns the exit code."""
    store = await asyncio.to_thread(archive_of, request.batch.store)
    crew = _crew_for(request) if _apart(request) else None
    try:
        if crew is None:
            # A daemon: nobody waits for it where nothing is to be done after all.
            threading.Thread(target=_load, args=(request.batch, store), daemon=True).start()
        elif await asyncio.to_thread(_has_work, request.batch, store):
            await crew.load()
        with Interrupts(f"to go on with the jobs: {request.again}") as interrupts:
            interrupts.abandons(reporter.stop)
            try:
                reporter.waiting(
                    "connecting to the Temporal server, which is started if it is the embedded one"
                )
                async with connect(request.target) as connection:
                    interrupts.abandons_server(connection.embedded)
                    return await _run(request, reporter, connection, store, interrupts, crew)
            except asyncio.CancelledError:
                # Cancelled by whoever awaits this, and not by the user.
                if not interrupts.asked.is_set():
                    raise
                note("interrupted before anything was started")
                return INTERRUPTED
    finally:
        reporter.stop()
        if crew is not None:
            await crew.close()


async def dry_run(request: Request, reporter: Reporter) -> int:
    """Say what ``run_batch`` would do, and start nothing, no server either: where none runs, it is
    what the archive says.
    """
    store = await asyncio.to_thread(archive_of, request.batch.store)
    async with connect_if_up(request.target) as connection:
        if connection is None:
            plan = await asyncio.to_thread(
                unasked_plan, store, request.batch, rerun_failed=request.rerun_failed
            )
        else:
            plan = await _planned(Control(connection.client, store), request, connection)
    reporter.planned(plan, "dry run: nothing is started")
    reporter.listed(plan)
    if connection is None and plan.counted(Start.OPEN):
        note("no server runs, and so none was asked whether it knows the jobs that are open")
    if connection is not None and request.lost is Lost.REFUSED:
        refuse_lost(store, plan, connection.address, request.again)
    return 0


def _crew_for(request: Request) -> Crew:
    """The processes that work on a batch, where this one does not.

    Raises:
        InputError: if ``HOLDFAST_ROLES`` has no roles in it.
    """
    wish = Workers(batch=request.batch.batch, metrics=metrics_address())
    return crew_of(request.target, request.batch.store, wish)


def _apart(request: Request) -> bool:
    """Whether processes of their own work on the jobs, and not this one: whatever kills a worker
    leaves the one that tells how all of them end.

    A few jobs that run no programs of others are not worth the seconds that another process takes
    to start.
    """
    size, jobs = request.workers, request.batch.jobs
    if size is not None and size != 1:
        return size > 1
    return len(jobs) >= JOBS_EACH or any(map(_runs_programs, jobs))


def _runs_programs(spec: JobSpec) -> bool:
    """Whether a job calls programs that may kill their worker; a sandbox's cannot."""
    unbound = spec.writable is not None and spec.writable.sandbox == "none"
    return bool(spec.tools or spec.mcp or spec.check or unbound)


@asynccontextmanager
async def _worked_on(
    request: Request,
    plan: Plan,
    open_jobs: int,
    connection: Connection,
    store: ObjectStore,
    interrupts: Interrupts,
    crew: Crew | None,
) -> AsyncIterator[None]:
    """There are workers for the batch within the block: a crew, or this process."""
    if crew is None:
        from runtime.worker.worker import running_worker

        limited = await plan_queues(store, plan)
        queue = batch_queue(plan.batch)
        async with running_worker(connection.client, store, task_queue=queue, limited=limited):
            yield
        return
    size = request.workers or fitting_size(open_jobs, shared=connection.embedded is not None)
    interrupts.abandons(crew.kill)
    async with (
        beside(_kept(crew, size, request.again), "crew"),
        attended(connection.client, state_home()),
    ):
        yield


async def _kept(crew: Crew, size: int, again: str) -> NoReturn:
    """Keep so many of a crew at work.

    Raises:
        InputError: if its processes refuse what they are given.
    """
    code = await crew.work(size)
    raise InputError(
        f"no worker is left: each would end with exit code {code}, for the reason above. The jobs"
        f" stay as they are; to go on with them: {again}"
    )


async def _run(
    request: Request,
    reporter: Reporter,
    connection: Connection,
    store: ObjectStore,
    interrupts: Interrupts,
    crew: Crew | None,
) -> int:
    control = Control(connection.client, store)
    reporter.waiting("asking how the jobs stand")
    plan = await _without_lost(control, request, connection)
    reporter.planned(plan, connection.shown)
    seen = Seen(plan.ended)
    interrupted, archive = False, ""
    left = len(plan.ids) - len(seen.outcomes)
    if left or await _asked(connection, lambda: goes_on(control, plan)):
        archive = await asyncio.to_thread(archive_id, store)
        reporter.waiting("starting a worker: loading the model library and the interpreter")
        async with _worked_on(request, plan, max(left, 1), connection, store, interrupts, crew):
            # From here on jobs run: an interrupt lets the calls in flight end.
            interrupts.patient = True
            reporter.waiting("submitting the jobs and waiting for their first turn")
            begun = await _unless_asked(_begun(control, connection, plan), interrupts)
            interrupted = begun is None
            if begun is not None:
                plan, seen = begun, Seen(begun.ended)
                reporter.begun(plan)
                looks = (
                    tell_of_full_disks(_written(connection, store), note, request.again),
                    tell_of_a_lost_archive(store, archive, note),
                )
                watching = [asyncio.create_task(look) for look in looks]
                try:
                    interrupted = await _until_told(control, plan, reporter, seen, interrupts)
                finally:
                    for look in watching:
                        look.cancel()
    damaged: list[str] = []
    jobs = await asyncio.to_thread(summary, store, plan, seen, damaged)
    reporter.closed(jobs, request.again if interrupted else None, request.rerun)
    if archive:
        await asyncio.to_thread(check_is_there, store, archive)
    # Of the others all is told by then.
    if damaged:
        more = f" (and {len(damaged) - 1:,} more)" if len(damaged) > 1 else ""
        raise ObjectCorrupt(f"{damaged[0]}{more}")
    return INTERRUPTED if interrupted else exit_code(one.status for one in seen.outcomes.values())


async def _begun(control: Control, connection: Connection, plan: Plan) -> Plan:
    """The plan, submitted, with the jobs that the batch begins again by itself.

    Waits for a worker of the batch: for those that are loading, or for ever where none comes.
    """
    await _asked(connection, lambda: submit(control, plan))
    return await _with_those_to_come(control, connection, plan)


async def _with_those_to_come(control: Control, connection: Connection, plan: Plan) -> Plan:
    """The plan with the jobs that the batch begins again by itself, of which the user is told."""
    now = await _asked(connection, lambda: with_those_to_come(control, plan))
    if again := len(plan.ended) - len(now.ended):
        note(
            f"{counted(again, 'job')} of those that ended without success"
            f" {'begins' if again == 1 else 'begin'} again, as was asked for before or by 'retry:'"
        )
    return now


async def _without_lost(control: Control, request: Request, connection: Connection) -> Plan:
    """What to do with each job, once those that are lost go on again.

    Raises:
        InputError: if some are, and the user has not said what is to become of them.
    """
    plan = await _planned(control, request, connection)
    if request.lost is Lost.ANEW:
        from runtime.client.left_behind import end_left_behind

        # Before they begin: then they are not lost any more, and nobody would look for these.
        await end_left_behind(control, plan)
    if not plan.counted(Start.LOST):
        return plan
    if request.lost is Lost.REFUSED:
        refuse_lost(control.store, plan, connection.address, request.again)
    from runtime.client.forks import resume_lost

    await resume_lost(control.client, control.store, plan)
    # Anew: what was lost has a run now.
    return await _planned(control, request, connection)


async def _asked(connection: Connection, ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """What ``ask`` comes to, which may be asked any number of times."""
    # The embedded server may be killed and started again meanwhile; at any other, the SDK's own
    # tries must do.
    return await (ask() if connection.embedded is None else through_restarts(ask))


def _load(batch: BatchSpec, store: ObjectStore) -> None:
    """Load what is slow to load while the server starts and the jobs are asked for, if it seems
    that there is something to do.
    """
    if not _has_work(batch, store):
        return
    # The worker loads it again, and says what is wrong.
    with suppress(Exception), loading():
        from activities.model import warm

        warm()


def _has_work(batch: BatchSpec, store: ObjectStore) -> bool:
    """Whether the archive lacks the end of one of the first jobs; the server knows for certain."""
    with suppress(HoldfastError):
        for spec in batch.jobs[:_LOOKED_AT]:
            archive = JobArchive.of(store, JobKey(batch=batch.batch, job=spec.id))
            runs = archive.runs()
            if not runs or archive.end(runs[-1]) is None:
                return True
    return False


def _written(connection: Connection, store: ObjectStore) -> list[Path]:
    """The directories of this machine that a batch writes to."""
    folders = [state_home().server] if connection.embedded is not None else []
    archive = folder_of(store)
    return folders if archive is None else [*folders, archive]


async def _planned(control: Control, request: Request, connection: Connection) -> Plan:
    again, anew = request.rerun_failed, request.lost is Lost.ANEW
    return await _asked(
        connection, lambda: plan_batch(control, request.batch, rerun_failed=again, anew=anew)
    )


async def _until_told(
    control: Control, plan: Plan, reporter: Reporter, seen: Seen, interrupts: Interrupts
) -> bool:
    """Watch until all have ended, and whoever asked to be told of it is; True if the user
    interrupts before.
    """
    if await _unless_asked(_done(Watch(control, plan), reporter, seen), interrupts) is None:
        return True
    on_finish = plan.spec.on_finish
    if on_finish is not None:
        reporter.waiting(f"telling {on_finish.shown} of the end")
    await until_told(control, plan.batch, frozenset(plan.ids), interrupts.asked)
    return on_finish is not None and interrupts.asked.is_set()


async def _done(watch: Watch, reporter: Reporter, seen: Seen) -> Seen:
    """What was seen until all have ended."""
    async for event in watch.events():
        if isinstance(event, Ended):
            seen.outcomes[event.outcome.key.job] = event.outcome
            seen.progress.pop(event.outcome.key.job, None)
            reporter.ended(event.outcome)
        elif isinstance(event, Retried):
            reporter.retried(event)
        elif isinstance(event, Silent):
            reporter.silent(event.reason)
        else:
            seen.progress[event.key.job] = event.progress
            reporter.turn(event)
    return seen


async def _unless_asked(work: Coroutine[Any, Any, Answer], interrupts: Interrupts) -> Answer | None:
    """What ``work`` comes to; None if the user interrupts before, who is told what follows."""
    working = asyncio.create_task(work)
    asking = asyncio.create_task(interrupts.asked.wait())
    try:
        await asyncio.wait({working, asking}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            # Raises what ended it, if it was an error.
            return working.result()
    finally:
        working.cancel()
        asking.cancel()
        # Of a call that is cancelled the SDK makes an error of its own, which nobody else hears of.
        await asyncio.gather(working, asking, return_exceptions=True)
    from runtime.worker.worker import GRACE

    seconds = GRACE.total_seconds()
    note(
        f"draining: calls in flight have {seconds:.0f} s to end, then the worker stops. Again to"
        " stop at once."
    )
    return None
