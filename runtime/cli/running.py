"""``holdfast run`` from the checked jobs file to the exit code: a worker in process, and a client that watches."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from runtime.cli.output import note
from runtime.cli.reporters import Reporter
from runtime.cli.stores import archive_of
from runtime.connection import Connection, Target, connect
from runtime.control import Control, Ended, Plan
from runtime.job.stops import JobStatus
from runtime.spec.models import BatchSpec
from runtime.worker import running_worker
from workflows.messages import JobOutcome

SOME_FAILED, BUDGET, INTERRUPTED = 1, 3, 130


async def run_batch(batch: BatchSpec, target: Target, reporter: Reporter, *, rerun_failed: bool) -> int:
    """Run or resume a batch; returns the exit code."""
    store = await asyncio.to_thread(archive_of, batch.store)
    async with connect(target) as connection:
        control = Control(connection.client, store)
        plan = await control.plan(batch, rerun_failed=rerun_failed)
        reporter.planned(plan, _where(connection))
        outcomes = {job.spec.id: job.outcome for job in plan.jobs if job.outcome is not None}
        interrupted = False
        if len(outcomes) < len(plan.jobs):
            async with running_worker(connection.client, store):
                await control.submit(plan)
                interrupted = await _until_done(control, plan, reporter, outcomes)
        summary = await asyncio.to_thread(_summary, control, plan, outcomes)
    reporter.closed(summary, _resume_note(summary) if interrupted else None)
    return INTERRUPTED if interrupted else exit_code(outcomes)


async def dry_run(batch: BatchSpec, target: Target, reporter: Reporter, *, rerun_failed: bool) -> int:
    """Say what ``run_batch`` would do, and start nothing but the embedded server to ask."""
    store = await asyncio.to_thread(archive_of, batch.store)
    async with connect(target) as connection:
        reporter.planned(await Control(connection.client, store).plan(batch, rerun_failed=rerun_failed), "dry run")
    return 0


async def run_worker(target: Target, store_url: str | None) -> int:
    """A worker until it is interrupted; returns the exit code."""
    store = await asyncio.to_thread(archive_of, store_url)
    async with connect(target) as connection:
        with _interrupts() as interrupted:
            async with running_worker(connection.client, store):
                note(f"working on {_where(connection)}; Ctrl-C drains, a second one stops at once")
                await interrupted.wait()
    return 0


def exit_code(outcomes: dict[str, JobOutcome]) -> int:
    """0 if all succeeded, 3 if a budget stopped some and nothing worse happened, else 1."""
    statuses = {outcome.status for outcome in outcomes.values()}
    if statuses <= {JobStatus.SUCCEEDED}:
        return 0
    return BUDGET if statuses <= {JobStatus.SUCCEEDED, JobStatus.BUDGET} else SOME_FAILED


async def _until_done(control: Control, plan: Plan, reporter: Reporter, outcomes: dict[str, JobOutcome]) -> bool:
    """Watch until all have ended or the user interrupts; True for the latter."""

    async def follow() -> None:
        async for event in control.watch(plan):
            if isinstance(event, Ended):
                outcomes[event.outcome.key.job] = event.outcome
                reporter.ended(event.outcome)
            else:
                reporter.turn(event)

    with _interrupts() as interrupted:
        following = asyncio.create_task(follow())
        asking = asyncio.create_task(interrupted.wait())
        await asyncio.wait({following, asking}, return_when=asyncio.FIRST_COMPLETED)
        if following.done():
            asking.cancel()
            following.result()
            return False
        following.cancel()
        note("draining: calls in flight may end, then the worker stops. Ctrl-C again stops it at once.")
        return True


@contextmanager
def _interrupts() -> Iterator[asyncio.Event]:
    """The first SIGINT or SIGTERM sets the event; the next one ends the process at once."""
    loop = asyncio.get_running_loop()
    event = asyncio.Event()

    def hear() -> None:
        if event.is_set():
            note("stopped; the jobs stay resumable: give the same command again")
            os._exit(INTERRUPTED)
        event.set()

    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, hear)
    yield event


def _summary(control: Control, plan: Plan, outcomes: dict[str, JobOutcome]) -> list[dict[str, Any]]:
    summary: list[dict[str, Any]] = []
    for job in plan.jobs:
        outcome = outcomes.get(job.spec.id)
        summary.append(
            {
                "job": f"{plan.batch}/{job.spec.id}",
                "status": outcome.status if outcome else JobStatus.RUNNING,
                "reason": outcome.reason if outcome else "",
                "result": control.result(outcome) if outcome else None,
                "turns": outcome.turns if outcome else job.turn,
                "tokens": outcome.usage.total if outcome else 0,
                "cost_usd": outcome.cost_usd if outcome else 0.0,
            }
        )
    return summary


def _resume_note(summary: list[dict[str, Any]]) -> str:
    left = sum(job["status"] == JobStatus.RUNNING for job in summary)
    return f"interrupted: {left} of {len(summary)} jobs are not done; give the same command again to go on with them"


def _where(connection: Connection) -> str:
    kind = "embedded server" if connection.embedded is not None else "server"
    return f"{kind} {connection.address}" + (f", web UI {connection.ui_url}" if connection.ui_url else "")
