"""A sleeping job in Temporal: timers and short readings, no model call and nothing that holds a worker (docs/design.md section 5)."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from runtime.context.sources import ReadResult
    from runtime.job.phases import Phase
    from runtime.job.stops import Stop

if TYPE_CHECKING:
    from workflows.job import JobWorkflow


async def sleep(flow: JobWorkflow) -> Stop | None:
    """Sleep, if the last statement asked for it, until the job is woken; a stop, if it outlives its budget meanwhile."""
    job, sleeping = flow.job, flow.job.sleeping
    if sleeping.state is None:
        return None
    flow.phase = Phase.ASLEEP
    if (record := flow.replaying.record) is not None:
        for at in sleeping.left_of(record.interim):
            await _look(flow, at, repeated=True)
        sleeping.repeat(record.interim)
    await _prepare(flow, flow.now)
    await _meet(flow)
    while (alarm := sleeping.alarm(job.graph)) is not None:
        now = flow.now
        if flow.inbox:
            sleeping.wake("a message", now)
        elif (stop := job.stop(now)) is not None:
            return stop
        elif alarm <= now:
            await _look(flow, now)
            await flow.go_on_if_full()
        else:
            await _pass_time(flow, min(alarm - now, job.ledger.time_left(now)))
    return None


async def _prepare(flow: JobWorkflow, now: float) -> bool:
    """Begin what the sleeping job prepares. Whether that waited for something within the worker."""
    return flow.job.sleeping.state is not None and await flow.preparing.begin(now)


async def _meet(flow: JobWorkflow) -> None:
    """Wait for one event of the server, and see what has arrived before it.

    A message that comes in while a verdict is recorded, or a group's material kept, stands before it live and after it in a
    replay, see ``JobWorkflow.passed``. A sleep that is not slept because of such a message would have a timer in the replay alone.
    """
    if flow.job.sleeping.state is not None:
        await workflow.sleep(timedelta(milliseconds=1), summary="falling asleep")
        flow.passed(0.001)


async def _pass_time(flow: JobWorkflow, seconds: float) -> None:
    """Let time pass, until a message or something prepared arrives at the latest. It is the job's, no more than it asked for."""
    seconds = max(seconds, 0.001)
    timeout = timedelta(seconds=seconds)
    with contextlib.suppress(asyncio.TimeoutError):
        await workflow.wait_condition(
            lambda: bool(flow.arrived) or flow.preparing.arrived, timeout=timeout, timeout_summary="asleep"
        )
    flow.passed(seconds)


async def _look(flow: JobWorkflow, at: float, *, repeated: bool = False) -> None:
    """A tick of the sleeping job. A ``repeated`` one is of a sleep that is followed in a record."""
    job, sleeping = flow.job, flow.job.sleeping
    if not repeated and sleeping.is_over(job.graph, at):
        return
    await flow.preparing.apply(at)
    if (state := sleeping.state) is None:
        return
    due = job.due_asleep(at, all_of_them=repeated)
    results: tuple[ReadResult, ...] = ()
    if due:
        read = await flow.effects.look(due, job.turn, state, flow.replaying.effect)
        results = read.results
        flow.passed(read.worked)
    job.tick_asleep(results, at, repeated=repeated)
    if await _prepare(flow, at):
        await _meet(flow)
