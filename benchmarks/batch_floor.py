"""The floor of a batch: workflows that each call one bare activity after the other, on the embedded
server, with one worker in this process.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from temporalio import activity, workflow
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from runtime.server.connection import connect
from runtime.server.target import Target

QUEUE = "batch-floor"
CALLS = 10


@activity.defn
async def nothing(number: int) -> int:
    """What it is given."""
    return number


@workflow.defn(sandboxed=False)
class Bare:
    """Calls an activity so many times."""

    @workflow.run
    async def run(self, calls: int) -> int:
        """One after the other."""
        for number in range(calls):
            # A payload's signature names its activity, which needs an id for that.
            await workflow.execute_activity(
                nothing,
                number,
                activity_id=f"call-{number}",
                start_to_close_timeout=timedelta(minutes=1),
            )
        return calls


def measured(at_once: int) -> float:
    """Activities a second, with so many workflows at a time."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOLDFAST_HOME"] = str(Path(folder))
        try:
            return asyncio.run(_measured(at_once))
        finally:
            del os.environ["HOLDFAST_HOME"]


async def _measured(at_once: int) -> float:
    async with (
        connect(Target()) as connection,
        Worker(
            connection.client,
            task_queue=QUEUE,
            workflows=[Bare],
            activities=[nothing],
            workflow_runner=UnsandboxedWorkflowRunner(),
        ),
    ):

        async def one(number: int) -> None:
            await connection.client.execute_workflow(
                Bare.run, CALLS, id=f"bare-{number}", task_queue=QUEUE
            )

        began = time.monotonic()
        await asyncio.gather(*map(one, range(at_once)))
        return at_once * CALLS / (time.monotonic() - began)
