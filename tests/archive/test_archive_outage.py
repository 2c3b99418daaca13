"""The S3 server is away in mid-batch: Temporal tries again and again, and the jobs go on as if
nothing had been.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from s3_server import S3Server
from temporalio.client import WorkflowHandle
from temporalio.testing import WorkflowEnvironment

from activities.model import warm
from runtime.archive.stores import open_store
from runtime.archive.verify import damage, verify_job
from runtime.base.workflow_ids import job_workflow_id
from runtime.job.stops import JobStatus
from runtime.server.binary import installed_binary
from tests.cli.command_line import gated
from tests.servers.temporal_server import CONVERTER, START
from tests.workflow.stage import Stage
from workflows.messages import JobOutcome

pytestmark = [pytest.mark.s3, pytest.mark.server, pytest.mark.kill]

FAILURES = 3
"""How often what needs the archive fails until the server is back."""

JOBS = ("a", "b", "c")
"""Of which two are open at a time."""


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[S3Server]:
    """Nobody else's: the tests after this one would find it away, if it did not begin again."""
    server = S3Server(tmp_path / "s3")
    server.start()
    yield server
    server.kill()


async def failed_attempts(handle: WorkflowHandle[Any, Any]) -> int:
    """How often the activity in flight has failed so far."""
    pending = (await handle.describe()).raw_description.pending_activities
    return max((activity.attempt - 1 for activity in pending), default=0)


@pytest.mark.usefixtures("aws")
async def test_a_batch_outlives_an_outage_of_its_archive(
    own_server: S3Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Killed while jobs run and started again when calls of each have failed, or have a reply that
    cannot be archived: all end as they would have, also the one that waited, and verify clean.
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
        stage.store = open_store(own_server.url(uuid.uuid4().hex))
        gate, policy = tmp_path / "gate", tmp_path / "policy.py"
        policy.write_text(gated(gate))
        orders = [stage.order(f"scripted/{policy}", id=name, turns=9999) for name in JOBS]
        archives = {order.key.job: stage.archive(order.spec) for order in orders}
        stage.started += [job_workflow_id(order.key) for order in orders]
        jobs = [
            stage.client.get_workflow_handle(id, result_type=JobOutcome) for id in stage.started
        ]
        async with stage.open():
            batch = await stage.submit(*orders, concurrency=2)

            def turns(name: str) -> int:
                archive = archives[name]
                return len(list(archive.steps())) if archive.runs() else 0

            while min(turns("a"), turns("b")) < 2:  # noqa: ASYNC110 no event tells
                await asyncio.sleep(0.05)
            own_server.kill()

            def holds(job: WorkflowHandle[Any, Any]) -> bool:
                """Whether a reply was there already: it is not asked for again."""
                mark = f"{job.id.removeprefix('holdfast/')} turn"
                return any(
                    mark in line and "waits to be archived" in line for line in caplog.messages
                )

            try:
                for job in jobs[:2]:
                    # No event tells.
                    while not holds(job) and await failed_attempts(job) < FAILURES:  # noqa: ASYNC110
                        await asyncio.sleep(0.5)
            finally:
                await asyncio.to_thread(own_server.start)
            gate.touch()
            state = await batch.result()
            outcomes = [await job.result() for job in jobs]
        await stage.replay_all()
    assert state.ended == dict.fromkeys(JOBS, JobStatus.SUCCEEDED)
    for outcome in outcomes:
        archive = archives[outcome.key.job]
        assert outcome.reason == "finished"
        assert [step.turn for step in archive.steps()] == list(range(1, outcome.turns + 1))
        assert damage(verify_job(archive, [outcome.end] if outcome.end else [])) == []
        end = archive.end(outcome.run)
        assert end is not None
        assert end.result == 1
