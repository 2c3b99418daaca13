"""Jobs that Temporal has lost, and that go on out of the archive."""

from __future__ import annotations

import asyncio

import pytest
from temporalio.client import Client

from activities.record import RunName
from runtime.archive.catalog import all_jobs
from runtime.base.spec.models import ModelSettings, Spawn
from runtime.base.values import JobKey
from runtime.base.workflow_ids import job_workflow_id
from runtime.client.forks import go_on
from runtime.client.resets import outcome_of_reset
from runtime.job.stops import JobStatus
from tests.eventually import eventually, forgotten, until_phase
from tests.held_store import HeldStore
from tests.workflow.stage import Stage
from workflows.messages import Note, batch_queue

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


async def _lose(client: Client, *jobs: JobKey) -> None:
    """Have Temporal know nothing more of jobs that run."""
    names = [job_workflow_id(job) for job in jobs]
    for name in names:
        await client.get_workflow_handle(name).terminate()
    await asyncio.gather(*(forgotten(client, name) for name in names))


async def test_a_sub_job_that_ends_before_its_job_goes_on_is_heard(stage: Stage) -> None:
    """It went on first, and had nobody to tell its end when that came."""
    model = ModelSettings(name=stage.script(["wait(300)", "finish('below')"]))
    replies = ["a = spawn('Below.')", "wait_for(a)", "finish(a.text)"]
    spec = stage.spec(replies, id="job", spawn=Spawn(model=model))
    await until_phase(await stage.start(spec), "asleep")
    [below] = [key for key in all_jobs(stage.store, stage.batch) if key.job != "job"]
    child = stage.client.get_workflow_handle(job_workflow_id(below))
    await until_phase(child, "asleep")
    await _lose(stage.client, JobKey(batch=stage.batch, job="job"), below)

    # Between the look at the ends of sub-jobs and the start of the job.
    store = HeldStore(stage.store, lambda key: key.startswith(f"{stage.batch}/job/replays/"))
    source = RunName(batch=stage.batch, job="job", run=stage.archive(spec).runs()[-1])
    # By which jobs of commands go.
    stage.queue = batch_queue(stage.batch)
    async with stage.open():
        going = asyncio.create_task(go_on(stage.client, store, source, {"job": [below]}))
        await eventually(store.reached.is_set, "the job is to be started")
        await child.signal("message", Note.of("Wake up."))
        assert (await child.result())["status"] == "succeeded"
        store.let_go.set()
        outcome = await outcome_of_reset(stage.client, await going)
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 3)
    assert "below" in str(stage.archive(spec).end(outcome.run).result)
    stage.started.append(child.id)
