"""What a batch is told of its jobs while they wait, start and end: that they are not wanted, or
wanted again.
"""

from __future__ import annotations

import json

import pytest
from stage import Stage, events_of, replayer
from temporalio.api.sdk.v1 import WorkflowMetadata

from runtime.archive.notices import notices
from runtime.base.spec.finish import OnFinish
from runtime.base.spec.models import ToolSpec
from runtime.base.values import JobKey
from runtime.base.workflow_ids import batch_workflow_id, job_workflow_id
from runtime.client.own_runs import describe
from runtime.job.stops import JobStatus
from tests.eventually import eventually
from workflows.batch import BatchWorkflow
from workflows.messages import BatchOrder, JobOrder, Note, Submission

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


async def test_wishes_are_for_jobs_that_wait_or_run_and_may_come_twice(stage: Stage) -> None:
    """Whether a wish finds its job waiting, starting or running, the job ends as cancelled, once,
    and the batch ends.
    """
    orders = tuple(
        JobOrder(
            key=JobKey(batch=stage.batch, job=name),
            spec=stage.spec([{"code": "finish(1)", "delay": delay}], id=name),
            definition="d",
        )
        for name, delay in (("first", 60.0), ("second", 60.0), ("third", 0.0))
    )
    handle = await stage.client.start_workflow(
        BatchWorkflow.run,
        BatchOrder(batch=stage.batch),
        id=batch_workflow_id(stage.batch),
        task_queue=stage.queue,
    )
    await handle.execute_update(BatchWorkflow.submit, Submission(jobs=orders, concurrency=1))
    for name in ("second", "second", "first", "first", "nobody"):
        await handle.signal(BatchWorkflow.withdraw, Note.of(name))
    state = await handle.result()
    assert state.ended == {
        "first": JobStatus.CANCELLED,
        "second": JobStatus.CANCELLED,
        "third": JobStatus.SUCCEEDED,
    }
    for name, reason in (("first", "cancelled"), ("second", "cancelled before it began")):
        job = stage.client.get_workflow_handle(job_workflow_id(JobKey(batch=stage.batch, job=name)))
        outcome = await job.result()
        assert (outcome["status"], outcome["reason"]) == ("cancelled", reason)
        await replayer().replay_workflow(await job.fetch_history())
    await replayer().replay_workflow(await handle.fetch_history())


async def test_a_job_whose_end_the_batch_has_not_heard_of_is_started_anew_once(
    stage: Stage,
) -> None:
    """A client hears of a job's end from the server, at times before the batch does.

    Given again, the rerun is not started again.
    """
    key = JobKey(batch=stage.batch, job="one")
    spec = stage.spec([{"code": "finish(1)", "delay": 60.0}], id="one")
    order = JobOrder(key=key, spec=spec, definition="d")
    batch = await stage.client.start_workflow(
        BatchWorkflow.run,
        BatchOrder(batch=stage.batch),
        id=batch_workflow_id(stage.batch),
        task_queue=stage.queue,
    )
    await batch.execute_update(BatchWorkflow.submit, Submission(jobs=(order,), concurrency=1))
    job = stage.client.get_workflow_handle(job_workflow_id(key))

    async def runs() -> bool:
        return await describe(stage.client, job.id) is not None

    async def runs_anew() -> bool:
        return (await job.describe()).run_id != first

    await eventually(runs, "the job is started")
    first = (await job.describe()).run_id or ""
    rerun = Submission(
        jobs=(order.model_copy(update={"definition": "e"}),),
        concurrency=1,
        rerun=("one",),
        ends={"one": first},
    )
    for _ in range(2):
        state = await batch.execute_update(BatchWorkflow.submit, rerun)
        assert (state.open, state.waiting) == (("one",), ("one",))
    await job.terminate()
    await eventually(runs_anew, "the job is started anew")
    state = await batch.execute_update(BatchWorkflow.submit, rerun)
    assert (state.open, state.waiting) == (("one",), ())
    await job.cancel()
    assert (await batch.result()).ended == {"one": JobStatus.CANCELLED}
    history = await batch.fetch_history()
    assert len(events_of(history, "START_CHILD_WORKFLOW_EXECUTION_INITIATED")) == 2
    await replayer().replay_workflow(history)


@pytest.mark.parametrize("hears", [True, False])
async def test_ends_are_told_once_each_and_the_batchs_last(
    stage: Stage, hears: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command is told of each job and then of the batch; one that does not hear changes no
    status, and is kept as such.
    """
    monkeypatch.setattr("workflows.finishing.TRIES", 1)
    said = stage.path / f"told-{hears}"
    # Several run at a time: each line is one write.
    command = f"printf '%s\\n' \"$(cat)\" >> {said.name}; exit {0 if hears else 1}"
    orders = tuple(
        JobOrder(
            key=JobKey(batch=stage.batch, job=name),
            spec=stage.spec([{"code": code}], id=name),
            definition="d",
        )
        for name, code in (("one", "finish(1)"), ("two", "finish(2)"), ("three", "finish(3)"))
    )
    handle = await stage.client.start_workflow(
        BatchWorkflow.run,
        BatchOrder(batch=stage.batch),
        id=batch_workflow_id(stage.batch),
        task_queue=stage.queue,
    )
    on_finish = OnFinish(command=command, directory=str(stage.path), timeout=120.0)
    submission = Submission(jobs=orders, concurrency=2, on_finish=on_finish)
    await handle.execute_update(BatchWorkflow.submit, submission)
    state = await handle.result()
    assert set(state.ended.values()) == {JobStatus.SUCCEEDED}
    shown = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    assert shown.current_details == "0 queued, 0 running, 3 runs of jobs ended"
    told = [json.loads(line) for line in said.read_text().splitlines()]
    assert sorted((one["job"], one["result"]) for one in told[:-1]) == [
        ("one", 1), ("three", 3), ("two", 2),
    ]  # fmt: skip
    assert (told[-1]["event"], told[-1]["jobs"], told[-1]["status"]) == ("batch", 3, "succeeded")
    assert len({one["key"] for one in told}) == 4
    kept = list(notices(stage.store, stage.batch))
    assert [one.heard for one in kept] == [hears] * 4
    await replayer().replay_workflow(await handle.fetch_history())


async def test_a_result_is_given_a_score(stage: Stage) -> None:
    """A check is run once the job has succeeded; its score stands in the outcome and the end."""
    (stage.path / "checks.py").write_text(
        "from typing import Any\n\ndef half(result: Any, workspace: str) -> list[Any]:\n"
        '    """Half of it."""\n    return [result / 2, "half"]\n'
    )
    check = ToolSpec(name="half", target="checks:half", search_path=str(stage.path), stub="")
    outcome, archive = await stage.run(["finish(3)"], check=check)
    assert (outcome.status, outcome.score) == (JobStatus.SUCCEEDED, 1.5)
    end = archive.end(outcome.run)
    assert end is not None
    assert (end.score, end.remarks) == (1.5, "half")
    assert any(key.endswith("effect-690000") for key in end.effects)
    await replayer().replay_workflow(await stage.history())
