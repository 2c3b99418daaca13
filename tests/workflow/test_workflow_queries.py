"""A job that is asked for its progress all the time, sent messages and cancelled: what it saw when,
a replay sees too.
"""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta

import pytest
from temporalio.client import WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from runtime.job.stops import JobStatus
from tests.eventually import eventually
from tests.workflow.stage import Stage
from workflows.job import JobWorkflow
from workflows.messages import JobOutcome, Note

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

TURNS = 12

Handle = WorkflowHandle[JobWorkflow, JobOutcome]


async def ask_once(handle: Handle) -> int:
    """The turn at which the job is; 0 where the server refuses, because too many queries wait for
    the worker already.
    """
    try:
        return int((await handle.query("progress"))["turn"])
    except RPCError as error:
        if error.status is not RPCStatusCode.RESOURCE_EXHAUSTED:
            raise
        return 0


async def ask_until(handle: Handle, ended: asyncio.Task[JobOutcome]) -> None:
    """Query the job all the time."""
    while not ended.done():
        await ask_once(handle)


async def test_a_job_that_is_queried_replays(stage: Stage) -> None:
    """Queries are answered while verdicts are recorded; neither times nor the order of messages
    depend on it.
    """
    (stage.workspace / "log.txt").write_text("one\n")
    naps = [f"n = sum(range({10_000 * turn}))\nwait(0.05)" for turn in range(TURNS)]
    spec = stage.spec(
        [
            "p = view('log.txt', freq=('Periodic', 0.05))\na = view('log.txt', freq='Async')",
            *naps,
            "finish(n)",
        ]
    )
    handle = await stage.start(spec, timedelta(seconds=10))
    ended = asyncio.create_task(handle.result())

    async def send() -> int:
        sent = 0
        while not ended.done():
            try:
                await handle.signal("message", Note.of(f"message {sent}"))
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
                break
            sent += 1
            await ask_once(handle)
        return sent

    *_, sent = await asyncio.gather(*(ask_until(handle, ended) for _ in range(3)), send())
    outcome = await ended
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, TURNS + 2)
    assert sent > 0


@pytest.mark.parametrize("seed", range(4))
async def test_a_job_that_is_queried_and_cancelled_replays(stage: Stage, seed: int) -> None:
    """A cancel that comes in while a verdict is recorded takes the same effect in a replay."""
    turn = random.Random(seed).randrange(1, TURNS)
    handle = await stage.start(
        stage.spec(
            [*[f"n = sum(range({30_000 * (t % 5)}))" for t in range(500)], "finish(n)"], turns=600
        )
    )
    ended = asyncio.create_task(handle.result())
    asking = [asyncio.create_task(ask_until(handle, ended)) for _ in range(3)]

    async def there() -> bool:
        return await ask_once(handle) >= turn

    await eventually(there, f"the job is in turn {turn}")
    await handle.cancel()
    assert (await ended).status is JobStatus.CANCELLED
    await asyncio.gather(*asking)
