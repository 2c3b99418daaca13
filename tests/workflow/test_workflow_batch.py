"""What a batch is told of its jobs while they wait, start and end: that they are not wanted, or
wanted again.
"""

from __future__ import annotations

import json
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar

import pytest
from stage import Stage, events_of, replayer
from temporalio.api.sdk.v1 import WorkflowMetadata

from runtime.archive.notices import notices
from runtime.base.spec.finish import OnFinish
from runtime.base.spec.models import Budget, ToolSpec
from runtime.base.values import JobKey
from runtime.base.workflow_ids import job_workflow_id
from runtime.job.stops import JobStatus
from tests.eventually import eventually
from tests.servers.handled import handled
from workflows import checking
from workflows.batch import BatchWorkflow
from workflows.messages import Note, Submission

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


async def test_wishes_are_for_jobs_that_wait_or_run_and_may_come_twice(stage: Stage) -> None:
    """Whether a wish finds its job waiting, starting or running, the job ends as cancelled, once,
    and the batch ends.
    """
    orders = tuple(
        stage.order([{"code": "finish(1)", "delay": delay}], id=name)
        for name, delay in (("first", 3600.0), ("second", 3600.0), ("third", 0.0))
    )
    handle = await stage.submit(*orders, concurrency=1)
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
    order = stage.order([{"code": "finish(1)", "delay": 3600.0}], id="one")
    batch = await stage.submit(order, concurrency=1)
    job = stage.client.get_workflow_handle(job_workflow_id(order.key))

    async def is_heard() -> bool:
        """Whether the batch has had a task since the start: before that it takes the run for none
        of its own.
        """
        history = await batch.fetch_history()
        started = events_of(history, "CHILD_WORKFLOW_EXECUTION_STARTED")
        tasks = events_of(history, "WORKFLOW_TASK_COMPLETED")
        return bool(started) and tasks[-1].event_id > started[0].event_id

    async def runs_anew() -> bool:
        return (await job.describe()).run_id != first

    await eventually(is_heard, "the batch hears that the job is started")
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
        stage.order([{"code": code}], id=name)
        for name, code in (("one", "finish(1)"), ("two", "finish(2)"), ("three", "finish(3)"))
    )
    on_finish = OnFinish(command=command, directory=str(stage.path), timeout=120.0)
    handle = await stage.submit(*orders, concurrency=2, on_finish=on_finish)
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
    kept = list(notices(stage.store, stage.batch, []))
    assert [one.heard for one in kept] == [hears] * 4
    await replayer().replay_workflow(await handle.fetch_history())


async def test_each_end_is_seen_while_others_run(stage: Stage) -> None:
    """In Temporal's own UI, also where no job waits for the place that became free."""
    orders = tuple(
        stage.order([{"code": "finish(1)", "delay": delay}], id=name)
        for name, delay in (("long", 600.0), ("short", 0.0))
    )
    handle = await stage.submit(*orders, concurrency=2)

    async def seen() -> bool:
        query = "__temporal_workflow_metadata"
        shown = await handle.query(query, result_type=WorkflowMetadata)
        return shown.current_details == "0 queued, 1 running, 1 runs of jobs ended"

    await eventually(seen, "the end of the short one is seen")
    await handle.signal(BatchWorkflow.withdraw, Note.of("long"))
    assert (await handle.result()).ended["long"] is JobStatus.CANCELLED


class Receiver(BaseHTTPRequestHandler):
    """Wants to hear nothing of the job ``one``, and of any other end at the second try."""

    keys: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        """Answer."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        again = body["key"] in self.keys
        self.keys.append(body["key"])
        refused = 404 if body.get("job") == "one" else 500
        self.send_response(200 if again else refused)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


async def test_who_refuses_one_end_is_told_of_the_others_until_heard(stage: Stage) -> None:
    """A refusal for good is an answer: its receiver is not taken for dead."""
    orders = tuple(stage.order([{"code": "finish(1)"}], id=name) for name in ("one", "two"))
    with handled(Receiver) as url:
        hook = OnFinish(webhook=f"{url}/", directory=str(stage.path), timeout=120.0)
        handle = await stage.submit(*orders, concurrency=1, on_finish=hook)
        await handle.result()
    told = {(one.job, one.event): one.heard for one in notices(stage.store, stage.batch, [])}
    assert told == {("one", "job"): False, ("two", "job"): True, ("", "batch"): True}
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


async def test_a_check_that_hangs_gives_no_score(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process is ended, the remarks say why, and the status is as before. The deadline of the
    job bounds it too, with all its waits.
    """
    monkeypatch.setattr(checking, "CHECK_LIMIT", timedelta(seconds=1))
    (stage.path / "checks.py").write_text(
        "import time\nfrom typing import Any\n\ndef hang(result: Any, workspace: str) -> float:\n"
        '    """Never ends."""\n    time.sleep(10**6)\n    return 1.0\n'
    )
    check = ToolSpec(name="hang", target="checks:hang", search_path=str(stage.path), stub="")
    budget = Budget(turns=9, tokens=10**9, usd=1000.0, deadline=3600.0)
    outcome, archive = await stage.run(["finish(3)"], check=check, budget=budget)
    assert (outcome.status, outcome.score) == (JobStatus.SUCCEEDED, None)
    end = archive.end(outcome.run)
    assert end is not None
    assert end.remarks == (
        "the check raised TimeoutError: it took more than its 1 seconds, and its process was ended"
    )
    history = await stage.history()
    scheduled = [
        event.activity_task_scheduled_event_attributes
        for event in events_of(history, "ACTIVITY_TASK_SCHEDULED")
    ]
    (checked,) = [one for one in scheduled if one.activity_id == "check"]
    longest = checked.schedule_to_close_timeout.ToTimedelta()
    assert timedelta(0) < longest <= timedelta(seconds=3600)
    await replayer().replay_workflow(history)
