"""The S3 server is away in mid-job: Temporal tries again and again, and the job goes on as if
nothing had been.
"""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest
from s3_server import S3Server
from temporalio.client import WorkflowHandle
from temporalio.testing import WorkflowEnvironment

from activities.model import warm
from runtime.archive.job import JobArchive
from runtime.archive.stores import open_store
from runtime.archive.verify import damage, verify_job
from runtime.job.stops import JobStatus
from runtime.server.binary import installed_binary
from tests.servers.temporal_server import CONVERTER, START
from tests.workflow.stage import Stage

pytestmark = [pytest.mark.s3, pytest.mark.server, pytest.mark.kill]

FAILURES = 3
"""How often what needs the archive fails until the server is back."""

TURNS = 6


async def failed_attempts(handle: WorkflowHandle) -> int:
    """How often the activity in flight has failed so far."""
    pending = (await handle.describe()).raw_description.pending_activities
    return max((activity.attempt - 1 for activity in pending), default=0)


@pytest.mark.usefixtures("aws")
async def test_a_job_outlives_an_outage_of_its_archive(s3_server: S3Server, tmp_path: Path) -> None:
    """Killed while a job runs and started again when calls have failed: the job ends as it would
    have, and verifies clean.
    """
    binary = installed_binary()
    assert binary is not None
    await asyncio.to_thread(warm)
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(binary),
        dev_server_startup_timeout=START,
        data_converter=CONVERTER,
    ) as temporal:
        stage = Stage(temporal.client, tmp_path, "outage")
        stage.store = open_store(s3_server.url(uuid.uuid4().hex))
        statements = [{"code": f"x = {n}", "delay": 0.5} for n in range(1, TURNS)]
        spec = stage.spec([*statements, "finish(x)"])
        archive = JobArchive(stage.store, stage.batch, spec.id)
        async with stage.open():
            handle = await stage.start(spec)
            while not archive.runs() or len(list(archive.steps())) < 2:  # noqa: ASYNC110 no event tells
                await asyncio.sleep(0.05)
            s3_server.kill()
            try:
                while await failed_attempts(handle) < FAILURES:  # noqa: ASYNC110 no event tells
                    await asyncio.sleep(0.5)
            finally:
                await asyncio.to_thread(s3_server.start)
            outcome = await asyncio.wait_for(handle.result(), 120)
        await stage.replay_all()
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, TURNS)
    assert [step.turn for step in archive.steps()] == list(range(1, TURNS + 1))
    assert damage(verify_job(archive, [outcome.end] if outcome.end else [])) == []
    end = archive.end(outcome.run)
    assert end is not None
    assert end.result == TURNS - 1
