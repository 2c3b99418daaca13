"""A job that is asked for its progress all the time, and sent messages: what it saw when, a replay sees too."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from temporalio.service import RPCError

from runtime.job.stops import JobStatus
from tests.workflow.stage import Stage

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

TURNS = 12


async def test_a_job_that_is_queried_replays(stage: Stage) -> None:
    """Queries are answered while verdicts are recorded; neither times nor the order of messages depend on it."""
    (stage.workspace / "log.txt").write_text("one\n")
    naps = [f"n = sum(range({10_000 * turn}))\nwait(0.05)" for turn in range(TURNS)]
    spec = stage.spec(
        ["p = view('log.txt', freq=('Periodic', 0.05))\na = view('log.txt', freq='Async')", *naps, "finish(n)"]
    )
    handle = await stage.start(spec, timedelta(seconds=10))
    ended = asyncio.create_task(handle.result())

    async def ask() -> None:
        while not ended.done():
            await handle.query("progress")

    async def send() -> int:
        sent = 0
        while not ended.done():
            try:
                await handle.signal("message", f"message {sent}")
            except RPCError:
                break
            sent += 1
            await handle.query("progress")
        return sent

    *_, sent = await asyncio.gather(ask(), ask(), ask(), send())
    outcome = await ended
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, TURNS + 2)
    assert sent > 0
