"""Running the jobs of a jobs file from Python, as ``holdfast run`` does."""

from __future__ import annotations

import asyncio
import inspect
import os
import shlex
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, get_args

from holdfast.arguments import check_type
from holdfast.results import BatchResult, JobResult, result_of
from runtime.archive.stores import ObjectStore
from runtime.base.errors import InputError
from runtime.base.quoted import shown
from runtime.base.spec.models import BatchSpec
from runtime.base.values import Usage
from runtime.cli.stores import address_of, archive_of, named
from runtime.cli.telemetry import begin_traces, flush_traces
from runtime.client.coming import goes_on, with_those_to_come
from runtime.client.control import Control
from runtime.client.forks import resume_lost
from runtime.client.lost import refuse_lost
from runtime.client.moves import Turn
from runtime.client.planning import plan_batch
from runtime.client.plans import Plan, Start
from runtime.client.preflight import check
from runtime.client.submission import plan_queues, submit
from runtime.client.watch import Ended, Retried, Silent, Watch, until_told
from runtime.job.phases import Phase
from runtime.jobsfile.load import load
from runtime.server.connection import connect
from runtime.server.target import Target
from runtime.worker.worker import running_worker
from workflows.messages import batch_queue

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

__all__ = ["JobEnded", "JobTurn", "Planned", "ServerSilent", "arun", "run", "stream"]


@dataclass(frozen=True)
class Planned:
    """The jobs of the batch by their ids: what is done with each (new, resumed, done, rerun).

    The first event.
    """

    batch: str
    jobs: dict[str, str]
    notes: tuple[str, ...] = ()
    """What is worth knowing before, such as a model whose price is not known."""


@dataclass(frozen=True)
class JobTurn:
    """A job has come to another turn or phase.

    ``trouble`` is why what it does now is tried again, if it is.
    """

    batch: str
    id: str
    turn: int
    phase: Phase
    usage: Usage
    cost_usd: float
    trouble: str | None = None


@dataclass(frozen=True)
class JobEnded:
    """A job has ended, now or under an earlier command."""

    result: JobResult


@dataclass(frozen=True)
class ServerSilent:
    """The Temporal server does not answer, for the ``reason`` given; it is asked again."""

    reason: str


Event = Planned | JobTurn | JobEnded | ServerSilent
OnEvent = Callable[[Event], Awaitable[None] | None]
Lost = Literal["refuse", "resume", "anew"]


_KINDS: dict[str, tuple[Any, ...]] = {
    "store": (os.PathLike, type(None)),
    "rerun_failed": (bool,),
    **dict.fromkeys(("address", "namespace", "profile"), (str, type(None))),
}


class Options(TypedDict, total=False):
    """How ``run``, ``arun`` and ``stream`` run the jobs: options of ``holdfast run``. There are no
    others: what that has beside, such as ``--workers``, goes with the command alone.
    """

    store: str | Path | None
    """The archive; None for the jobs file's, else the one that commands use."""
    rerun_failed: bool
    """Start the jobs anew that ended without success."""
    lost: Lost
    """What is done with jobs that the archive has open and Temporal does not know."""
    address: str | None
    """The Temporal server; None for the one of Temporal's configuration, else the embedded one."""
    namespace: str | None
    """The namespace on that server; None for that of Temporal's configuration."""
    profile: str | None
    """The profile of Temporal's configuration file; None for the one that it has as default."""
    tracer_provider: TracerProvider | None
    """Where traces go, an ``opentelemetry.sdk.trace.TracerProvider``; None for the collector of
    ``HOLDFAST_TRACES``, if that is set. A process has one.
    """


def run(
    jobs_file: str | Path, *, on_event: OnEvent | None = None, **options: Unpack[Options]
) -> BatchResult:
    """Run the jobs of a jobs file to their ends; given again, resume them.

    Arguments and errors as for ``arun``.

    Raises:
        RuntimeError: where an event loop runs already: await ``arun`` there.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(arun(jobs_file, on_event=on_event, **options))
    raise RuntimeError(
        "holdfast.run cannot be called where an event loop runs: use 'await holdfast.arun(...)'"
    )


async def arun(
    jobs_file: str | Path, *, on_event: OnEvent | None = None, **options: Unpack[Options]
) -> BatchResult:
    """Run the jobs of a jobs file to their ends; given again, resume them.

    ``on_event`` is called with each event, and awaited if it gives an awaitable. Errors are those
    of ``stream``.
    """
    if on_event is not None and not callable(on_event):
        raise InputError(f"on_event: expected a function or None, got {shown(on_event)}")
    batch, order = "", list[str]()
    ended: dict[str, JobResult] = {}
    # Closed also where ``on_event`` raises: else the worker would run on until it is collected.
    async with aclosing(stream(jobs_file, **options)) as events:
        async for event in events:
            if isinstance(event, Planned):
                batch, order = event.batch, list(event.jobs)
            elif isinstance(event, JobEnded):
                ended[event.result.id] = event.result
            if on_event is not None and inspect.isawaitable(told := on_event(event)):
                await told
    return BatchResult(batch, tuple(ended[id] for id in order))


def stream(jobs_file: str | Path, **options: Unpack[Options]) -> AsyncGenerator[Event]:
    """Run the jobs of a jobs file with a worker in this process, and tell what happens until the
    last one has ended.

    Whoever stops iterating stops the worker, and leaves the jobs resumable: do so under
    ``contextlib.aclosing``.

    Raises:
        TypeError: there is no such option; at once, as for any function.
        InputError: what the jobs file or an option says is wrong; nothing was started.
        ServerError: the Temporal server cannot be started or reached.
        ArchiveError: the archive cannot be read or written.
    """
    known = Options.__annotations__
    if (unknown := next((name for name in options if name not in known), None)) is not None:
        raise TypeError(
            f"unexpected keyword argument {unknown!r}: the options are {', '.join(known)}"
        )
    if (lost := options.get("lost", "refuse")) not in get_args(Lost):
        raise InputError(f"lost: expected one of {', '.join(get_args(Lost))}, got {lost!r}")
    check_type("jobs_file", jobs_file, os.PathLike)
    for name, kinds in _KINDS.items():
        if name in options:
            check_type(name, options.get(name), *kinds)
    return _traced(jobs_file, options)


async def _traced(jobs_file: str | Path, options: Options) -> AsyncGenerator[Event]:
    begin_traces(options.get("tracer_provider"))
    try:
        async with aclosing(_run(jobs_file, options)) as events:
            async for event in events:
                yield event
    finally:
        # Whoever calls may end the process at once.
        await asyncio.to_thread(flush_traces)


async def _run(jobs_file: str | Path, options: Options) -> AsyncGenerator[Event]:
    loaded = await asyncio.to_thread(load, jobs_file)
    batch = loaded.batch
    if (store := options.get("store")) is not None:
        batch = batch.model_copy(update={"store": os.fspath(store)})
    notes = await asyncio.to_thread(
        check, loaded, named(batch.store), archive=lambda: address_of(batch.store)
    )
    archive = await asyncio.to_thread(archive_of, batch.store)
    target = Target(options.get("address"), options.get("namespace"), options.get("profile"))
    async with connect(target) as connection:
        control = Control(connection.client, archive)
        plan = await _planned(control, batch, options)
        if plan.counted(Start.LOST):
            if options.get("lost", "refuse") == "refuse":
                refuse_lost(
                    archive,
                    plan,
                    connection.address,
                    shlex.join(["holdfast", "run", str(jobs_file)]),
                )
            await resume_lost(connection.client, archive, plan)
            # Once more: what was lost is open by now.
            plan = await _planned(control, batch, options)
        yield Planned(plan.batch, {job.id: job.start.value for job in plan.jobs}, tuple(notes))
        async with aclosing(_carried_out(control, plan)) as events:
            async for event in events:
                yield event


async def _planned(control: Control, batch: BatchSpec, options: Options) -> Plan:
    anew = options.get("lost") == "anew"
    return await plan_batch(
        control, batch, rerun_failed=options.get("rerun_failed", False), anew=anew
    )


async def _carried_out(control: Control, plan: Plan) -> AsyncGenerator[Event]:
    # With nothing left to do no worker need be loaded.
    if len(plan.ended) == len(plan.ids) and not await goes_on(control, plan):
        for outcome in plan.ended.values():
            yield JobEnded(await asyncio.to_thread(result_of, outcome, control.store))
        return
    queue, limited = batch_queue(plan.batch), await plan_queues(control.store, plan)
    async with running_worker(control.client, control.store, task_queue=queue, limited=limited):
        await submit(control, plan)
        plan = await with_those_to_come(control, plan)
        for outcome in plan.ended.values():
            yield JobEnded(await asyncio.to_thread(result_of, outcome, control.store))
        async with aclosing(Watch(control, plan).events()) as events:
            async for event in events:
                # Not told here: the public events know ends alone, and the job has not ended.
                if isinstance(event, Retried):
                    continue
                yield await asyncio.to_thread(_told, event, control.store)
        # By this worker: else the batch would hear of its end, and tell it, when another comes.
        await until_told(control, plan.batch, frozenset(plan.ids), asyncio.Event())


def _told(event: Turn | Ended | Silent, store: ObjectStore) -> Event:
    match event:
        case Ended(outcome=outcome):
            return JobEnded(result_of(outcome, store))
        case Silent(reason=reason):
            return ServerSilent(reason)
        case Turn(key=key, progress=at, trouble=trouble):
            error = None if trouble is None else trouble.error
            return JobTurn(key.batch, key.job, at.turn, at.phase, at.usage, at.cost_usd, error)
