"""What others do with a server that asks nobody who they are: it is refused by name, and no job's
task fails for it.

The strangers have the server's address, the SDK, Temporal's CLI and all that the histories hold;
they do not have the key.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from stage import Stage, events_of, overdue
from temporalio import workflow
from temporalio.api.common.v1 import Payload, Payloads, WorkflowExecution, WorkflowType
from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    RespondActivityTaskCompletedByIdRequest,
    SignalWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
)
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.record import ReplayOrder, RunName
from runtime.base.errors import InputError
from runtime.base.spec.models import BatchBudget, BatchSpec
from runtime.base.values import JobKey
from runtime.base.workflow_ids import TASK_LIMIT, batch_workflow_id, job_workflow_id
from runtime.client.control import Control
from runtime.client.planning import plan_batch
from runtime.client.plans import Start
from runtime.client.resets import outcome_of_reset, reset
from runtime.client.retries import retry
from runtime.client.submitted import figures
from runtime.job.stops import JobStatus
from runtime.jobsfile.changes import definition_digest
from runtime.server.authentic import NotSigned, PayloadKey, Refusal, signed_converter
from runtime.server.binary import installed_binary
from tests.eventually import SECONDS, eventually
from workflows.batch import BatchWorkflow
from workflows.job import JobWorkflow
from workflows.messages import BatchOrder, JobOrder, JobOutcome, Note, Submission

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

WAITS = ["wait(600)", "finish('woken')"]
"""A job that sleeps until it is told something."""

ARGUMENTS: list[Sequence[Any]] = [
    (),
    ("hi",),
    (1,),
    (None,),
    ("a", "b"),
    ({"id": 1},),
    ([],),
    (b"\0",),
]


@workflow.defn(name="JobWorkflow", sandboxed=False)
class Stolen:
    """What a stranger's worker makes of a job."""

    @workflow.run
    async def run(self, order: Any) -> dict[str, Any]:
        """Says that it succeeded."""
        return {"key": order["key"], "status": "succeeded"}


async def stranger(stage: Stage, key: PayloadKey | None = None) -> Client:
    """A client without the key, or with another."""
    converter = pydantic_data_converter if key is None else signed_converter(key)
    return await Client.connect(
        stage.address, namespace=stage.client.namespace, data_converter=converter
    )


async def temporal(stage: Stage, *arguments: str) -> tuple[int, str]:
    """Temporal's CLI: its exit code and what it wrote."""
    command = [str(installed_binary()), *arguments, "--address", stage.address]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


async def timers(handle: WorkflowHandle[Any, Any], count: int) -> None:
    """Wait until the job has started so many timers."""

    async def started() -> bool:
        return len(events_of(await handle.fetch_history(), "TIMER_STARTED")) >= count

    await eventually(started, f"the job has started {count} timers")


async def asleep(handle: WorkflowHandle[Any, Any]) -> None:
    """Wait until the job sleeps, with two timers."""
    await timers(handle, 2)


async def unharmed(handle: WorkflowHandle[Any, Any]) -> None:
    """No workflow task has failed, and the worker still answers."""
    await handle.query("progress")
    history = await handle.fetch_history()
    failed = [
        event.workflow_task_failed_event_attributes.cause
        for event in events_of(history, "WORKFLOW_TASK_FAILED")
    ]
    # A reset is told as a failure of the task that it goes back to.
    assert set(failed) <= {WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW}
    assert overdue(history) == []


async def ended_by(handle: WorkflowHandle[Any, Any]) -> ApplicationError:
    """The error with which a workflow failed, in the first task that it had."""
    with pytest.raises(WorkflowFailureError) as caught:
        await asyncio.wait_for(handle.result(), SECONDS)
    assert isinstance(caught.value.cause, ApplicationError)
    assert len(events_of(await handle.fetch_history(), "WORKFLOW_TASK_STARTED")) == 1
    return caught.value.cause


@pytest.mark.parametrize("kind", ["JobWorkflow", "BatchWorkflow", "NoneOfOurs"])
@pytest.mark.parametrize("other", [None, PayloadKey(b"another key of somebody else....")])
async def test_a_strangers_workflow_ends_at_once(
    stage: Stage, kind: str, other: PayloadKey | None
) -> None:
    """An order that is whole and unsigned, or signed with another key; nothing of it is begun."""
    spec = stage.spec(["finish('ran')"])
    order = JobOrder(key=JobKey(batch=stage.batch, job=spec.id), spec=spec, definition="")
    client = await stranger(stage, other)
    given = order if kind == "JobWorkflow" else BatchOrder(batch=stage.batch)
    handle = await client.start_workflow(
        kind,
        given,
        id=f"{stage.batch}-{kind}",
        task_queue=stage.queue,
        task_timeout=TASK_LIMIT,
    )
    error = await ended_by(handle)
    assert error.type == "NotSigned"
    expected = (
        "is signed with another key than this one: set HOLDFAST_KEY"
        if other
        else "is not signed: it was not"
    )
    assert error.message.startswith(f"a payload of workflow {stage.batch}-{kind} {expected}")
    assert stage.archive(spec).definition() is None


@pytest.mark.parametrize("kind", ["JobWorkflow", "BatchWorkflow"])
@pytest.mark.parametrize("values", [(), ("a", "b"), (1, 2, 3), (None,), (b"bytes",)])
async def test_a_workflow_without_one_order_ends_at_once(
    stage: Stage, kind: str, values: Sequence[Any]
) -> None:
    """No input, and too much of it, from somebody who has the key."""
    handle = await stage.client.start_workflow(
        kind,
        args=values,
        id=f"{stage.batch}-{kind}",
        task_queue=stage.queue,
        task_timeout=TASK_LIMIT,
    )
    error = await ended_by(handle)
    assert (
        error.type,
        error.message.startswith("a workflow of Holdfast begins with one order, and not so: "),
    ) == (
        "NoOrder",
        True,
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"spec": {"encoding": "none_of_tiktokens"}},
            "its encoding 'none_of_tiktokens' is unknown",
        ),
        (
            {"origin": {"seed": "s", "nodes": [{"kind": "file"}]}},
            "a node of its origin has no obj_id",
        ),
        ({"key": {"batch": "b", "job": ""}}, "its job or batch has no name"),
    ],
)
async def test_an_order_that_nobody_can_carry_out_ends_at_once(
    stage: Stage, fields: dict[str, Any], words: str
) -> None:
    """From somebody who has the key; in a batch's list it is refused."""
    order = stage.order(["finish(1)"]).model_dump(mode="json")
    changed = {name: {**(order[name] or {}), **value} for name, value in fields.items()}
    handle = await stage.client.start_workflow(
        "JobWorkflow",
        {**order, **changed},
        id=f"{stage.batch}-no",
        task_queue=stage.queue,
        task_timeout=TASK_LIMIT,
    )
    error = await ended_by(handle)
    assert (error.type, words in error.message) == ("NoOrder", True)
    batch = await stage.begin_batch()
    with pytest.raises(WorkflowUpdateFailedError):
        await batch.execute_update("submit", {"jobs": [{**order, **changed}], "concurrency": 1})
    await batch.terminate()


async def test_a_workflow_of_no_kind_and_without_an_order_ends_at_once(stage: Stage) -> None:
    """No worker of any build has it."""
    client = await stranger(stage)
    handle = await client.start_workflow(
        "NoneOfOurs",
        id=f"{stage.batch}-none",
        task_queue=stage.queue,
        task_timeout=TASK_LIMIT,
    )
    error = await ended_by(handle)
    assert (error.type, error.message) == (
        "NoOrder",
        "a workflow of Holdfast begins with one order, and NoneOfOurs with none",
    )


async def test_an_order_of_another_build_waits_for_its_worker(stage: Stage) -> None:
    """A kind of workflow that came later is not ended by a worker of before."""
    handle = await stage.client.start_workflow(
        "OfLater", "an order", id=f"{stage.batch}-later", task_queue=stage.queue
    )

    async def failed() -> bool:
        return bool(events_of(await handle.fetch_history(), "WORKFLOW_TASK_FAILED"))

    await eventually(failed, "a task of the workflow has failed")
    (first, *_) = events_of(await handle.fetch_history(), "WORKFLOW_TASK_FAILED")
    assert "this build has no workflow OfLater" in (
        first.workflow_task_failed_event_attributes.failure.message
    )
    assert (await handle.describe()).status is WorkflowExecutionStatus.RUNNING
    await handle.terminate()


async def test_an_order_is_for_its_own_job(stage: Stage) -> None:
    """A stranger gives another workflow the signed order that a history shows."""
    _, _ = await stage.run(["finish(1)"])
    started = (await stage.history()).events[0].workflow_execution_started_event_attributes
    client = await stranger(stage)
    handle = await _start_raw(client, stage, f"holdfast/{stage.batch}/copy", started.input)
    error = await ended_by(handle)
    assert (error.type, "does not have the signature that it would have here" in error.message) == (
        "NotSigned",
        True,
    )


@pytest.mark.smoke
async def test_an_order_is_carried_out_once(stage: Stage) -> None:
    """A stranger gives the job that has ended its own signed order again: no model is called, and
    no budget spent.
    """
    spec = stage.spec(["finish(1)"])
    key = JobKey(batch=stage.batch, job=spec.id)
    order = JobOrder(key=key, spec=spec, definition="", id="one")
    handle = await stage.client.start_workflow(
        JobWorkflow.run,
        order,
        id=job_workflow_id(key),
        task_queue=stage.queue,
        task_timeout=TASK_LIMIT,
    )
    first = await handle.result()
    assert first.status is JobStatus.SUCCEEDED
    started = (await handle.fetch_history()).events[0].workflow_execution_started_event_attributes
    await _start_raw(await stranger(stage), stage, handle.id, started.input)
    again = await stage.client.get_workflow_handle_for(JobWorkflow.run, handle.id).result()
    assert (again.status, again.turns, again.run != first.run) == (JobStatus.FAILED, 0, True)
    assert "OrderTaken: another run has had this order" in again.reason
    assert [step.run for step in stage.archive(spec).steps(first.run)] == [first.run]
    assert stage.archive(spec).runs() == [first.run]


async def test_a_strangers_run_says_nothing_about_a_job(stage: Stage) -> None:
    """Under the id of a job that has ended: unsigned, without an order, and with the job's own.

    Its own end counts; under an unused id, nothing.
    """
    spec = stage.spec(["finish(1)"])
    batch = BatchSpec(batch=stage.batch, jobs=(spec,))
    key = JobKey(batch=stage.batch, job=spec.id)
    digest = definition_digest(spec)
    handle = await stage.client.start_workflow(
        JobWorkflow.run,
        JobOrder(key=key, spec=spec, definition=digest, id="one"),
        id=job_workflow_id(key),
        task_queue=stage.queue,
        memo={"definition": digest},
    )
    outcome = await handle.result()
    assert outcome.status is JobStatus.SUCCEEDED
    control = Control(stage.client, stage.store)
    started = (await handle.fetch_history()).events[0].workflow_execution_started_event_attributes
    client = await stranger(stage)
    for given in (
        Payloads(),
        Payloads(payloads=[Payload(data=b"{}", metadata={"encoding": b"json/plain"})]),
        started.input,
    ):
        await _start_raw(client, stage, handle.id, given)
        await _over(handle)
        assert (await handle.describe()).run_id != outcome.run
        # A new client knows nothing from before.
        for asked in (control, Control(stage.client, stage.store)):
            assert await asked.outcome(key) == outcome
            standing = await asked.standing(key)
            assert standing is not None and (standing.run, standing.outcome) == (
                outcome.run,
                outcome,
            )
            (planned,) = (await plan_batch(asked, batch, rerun_failed=True)).jobs
            assert (planned.start, planned.outcome) == (Start.DONE, outcome)
    unused = JobKey(batch=stage.batch, job="unused")
    await _start_raw(client, stage, job_workflow_id(unused), Payloads())
    await _over(stage.client.get_workflow_handle(job_workflow_id(unused)))
    other = BatchSpec(batch=stage.batch, jobs=(spec.model_copy(update={"id": "unused"}),))
    (planned,) = (await plan_batch(control, other, rerun_failed=False)).jobs
    assert planned.start is Start.NEW
    assert await control.standing(unused) is None


async def _over(handle: WorkflowHandle[Any, Any]) -> None:
    """Wait until the newest run has ended."""

    async def ended() -> bool:
        return (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING

    await eventually(ended, "the run has ended")


async def test_a_strangers_batch_says_nothing_about_a_batch(stage: Stage) -> None:
    """Nothing of where the batch's archive is."""
    spec = stage.spec(["finish(1)"])
    client = await stranger(stage)
    handle = await client.start_workflow(
        "BatchWorkflow", "x", id=batch_workflow_id(stage.batch), task_queue=stage.queue
    )
    await _over(handle)
    (planned,) = (
        await plan_batch(
            Control(stage.client, stage.store),
            BatchSpec(batch=stage.batch, jobs=(spec,)),
            rerun_failed=False,
        )
    ).jobs
    assert planned.start is Start.NEW


async def test_no_signal_harms_a_job(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """By strangers and by the owner: no input, too much, of wrong types, by unknown names.

    The next real message is heard.
    """
    handle = await stage.start(stage.spec(WAITS))
    await asleep(handle)
    with caplog.at_level(logging.WARNING):
        for client in (await stranger(stage), stage.client):
            signalled = client.get_workflow_handle(handle.id)
            for name in (
                "message",
                "condense",
                "cancel",
                "withdraw",
                "no such signal",
                "__temporal_x",
                "",
            ):
                for values in ARGUMENTS:
                    if name and not (name.startswith("__") and client is stage.client):
                        await signalled.signal(name, args=list(values))
        for inputs in (
            [],
            ["--input", '"hi"'],
            ["--input", "1", "--input", "2"],
            ["--input", '{"id":"a","text":"b"}'],
        ):
            for name in ("message", "condense", "decide", "pause", "resume", "grant", "nothing"):
                code, said = await temporal(
                    stage, "workflow", "signal", "-w", handle.id, "--name", name, *inputs
                )
                assert code == 0, said
        await unharmed(handle)
    told = caplog.text
    assert (
        f"refused: a payload of workflow {handle.id} is not signed: it was not given by Holdfast"
        in told
    )
    assert (
        f"dropped the signal 'message' of {handle.id}: missing a required argument: 'note'" in told
    )
    assert f"dropped the signal 'condense' of {handle.id}: note is no Note" in told
    assert (await handle.query("progress"))["turn"] == 1
    await handle.signal("message", Note.of("wake up"))
    outcome = await handle.result()
    assert outcome.status is JobStatus.SUCCEEDED
    await unharmed(handle)


async def test_no_signal_harms_a_job_after_a_reset(stage: Stage) -> None:
    """The server delivers them again, to the run that the reset made."""
    handle = await stage.start(stage.spec(["n = 1", *WAITS]))
    await asleep(handle)
    run = (await handle.describe()).run_id
    client = await stranger(stage)
    for values in ARGUMENTS:
        await client.get_workflow_handle(handle.id).signal("message", args=list(values))
    key = JobKey(batch=stage.batch, job=handle.id.rpartition("/")[2])
    source = RunName(batch=key.batch, job=key.job, run=run or "")
    made = await reset(
        stage.client, stage.store, key, ReplayOrder(id="again", start=2, source=source)
    )
    again = stage.client.get_workflow_handle(handle.id, run_id=made.run)
    await asleep(again)
    assert len(events_of(await again.fetch_history(), "WORKFLOW_EXECUTION_SIGNALED")) == len(
        ARGUMENTS
    )
    await unharmed(again)
    await again.signal("message", Note.of("wake up"))
    assert (await outcome_of_reset(stage.client, made)).status is JobStatus.SUCCEEDED


async def test_no_values_of_a_program_with_the_key_harm_a_batch(stage: Stage) -> None:
    """Wishes of jobs that cannot be, a budget's time beyond the calendar, and a job whose name no
    workflow has: the server, or the calendar, would fail the batch's task for ever.
    """
    order = stage.order(["finish(1)"])
    batch = await stage.begin_batch()
    for values in ({"job": 3_000 * "j"}, {"job": "a", "run": "no run"}):
        await batch.signal("ask", {"wanted": {}, "waits": True, **values})
    long = order.model_copy(update={"key": JobKey(batch=stage.batch, job=3_000 * "j")})
    for fields in ({"budget": {"wall_seconds": 1e18}}, {"jobs": [long.model_dump(mode="json")]}):
        with pytest.raises(WorkflowUpdateFailedError):
            await batch.execute_update("submit", {"jobs": [], "concurrency": 1, **fields})
    await batch.execute_update(BatchWorkflow.submit, Submission(jobs=(order,), concurrency=1))
    assert (await batch.result()).ended == {order.key.job: JobStatus.SUCCEEDED}
    assert events_of(await batch.fetch_history(), "WORKFLOW_TASK_FAILED") == []


async def test_a_message_is_taken_once(stage: Stage) -> None:
    """A stranger who gives a signed message again, as the history shows it, is not heard; nor as a
    wish to condense.
    """
    first = ["wait(600)", "wait(600)", "finish('woken twice')"]
    handle = await stage.start(stage.spec(first))
    await asleep(handle)
    await handle.signal("message", Note.of("first"))
    await timers(handle, 4)
    [signal] = events_of(await handle.fetch_history(), "WORKFLOW_EXECUTION_SIGNALED")
    payload = signal.workflow_execution_signaled_event_attributes.input
    client = await stranger(stage)
    for name in ("message", "condense", "decide", "pause", "resume", "grant"):
        await _signal_raw(client, handle.id, name, payload)
    await unharmed(handle)
    assert (await handle.query("progress"))["turn"] == 2
    await handle.signal("message", Note.of("first"))
    outcome = await handle.result()
    archive = stage.archive(stage.spec(first, id=handle.id.rpartition("/")[2]))
    heard = [s.text for s in archive.turn_layout(outcome.run, 3) if s.kind == "message"]
    assert heard == ["first", "first"]


async def test_a_slice_is_taken_once(stage: Stage) -> None:
    """A batch's answer, given to its job again and again, lets the job spend no more than the
    batch's budget.
    """
    statements = [f"n = {n}" for n in range(2)] + ["wait(600)"] + [f"n = {n}" for n in range(20)]
    order = stage.order(statements)
    stage.started.append(job_workflow_id(order.key))
    batch = await stage.submit(order, concurrency=1, budget=BatchBudget(turns=8))
    job = stage.client.get_workflow_handle(stage.started[-1], result_type=JobOutcome)
    await eventually(lambda: _in_archive(stage, order), "the job has begun")
    await asleep(job)
    answers = await _signals(job, "grant")
    client = await stranger(stage)
    for answer in 5 * answers:
        await _signal_raw(client, job.id, "grant", answer)
    await job.signal("message", Note.of("wake up"))
    outcome = await job.result()
    assert (outcome.status, outcome.turns) == (JobStatus.BUDGET, 8)
    assert (await batch.result()).ended == {order.key.job: JobStatus.BUDGET}


async def test_a_batch_takes_a_wish_once(stage: Stage) -> None:
    """A wish that jobs begin again, and a submission with the figures of its time, which a
    stranger gives again, change nothing; nor does a wish that is given as a submission.
    """
    orders = [stage.order(WAITS, id=name) for name in "abc"]
    stage.started += [job_workflow_id(order.key) for order in orders]
    first = Submission(jobs=tuple(orders[:1]), concurrency=3, id="first")
    batch = await stage.begin_batch()
    await batch.execute_update(BatchWorkflow.submit, first)
    await batch.execute_update(
        BatchWorkflow.submit, Submission(jobs=tuple(orders[1:]), concurrency=1, id="second")
    )
    for wish in ("pause", "resume", "pause"):
        await batch.signal(wish, Note.of())
    [resumed] = await _signals(batch, "resume")
    accepted = events_of(await batch.fetch_history(), "WORKFLOW_EXECUTION_UPDATE_ACCEPTED")
    requests = [
        event.workflow_execution_update_accepted_event_attributes.accepted_request.input
        for event in accepted
    ]
    client = await stranger(stage)
    await _signal_raw(client, batch.id, "resume", resumed)
    await _signal_raw(client, batch.id, "retry", requests[0].args)
    await _signal_raw(client, batch.id, "retry", resumed)
    state = await batch.query(BatchWorkflow.state)
    assert (state.paused, state.open, state.waiting) == (True, ("a",), ("b", "c"))
    await batch.signal("resume", Note.of())
    # As the history has them, for whoever asks what holds.
    held = await figures(stage.client, stage.batch)
    assert held is not None
    assert held.concurrency == 1
    state = await batch.query(BatchWorkflow.state)
    assert (state.paused, state.open) == (False, ("a",))
    await batch.signal("withdraw_all", Note.of())
    assert set((await batch.result()).ended.values()) == {JobStatus.CANCELLED}


async def test_a_batch_that_has_ended_begins_anew_after_strangers(stage: Stage) -> None:
    """What others started under its id since then, without a word or with an order of theirs or
    its own, has ended, and is passed over; while it runs, it is named.
    """
    order = stage.order(["x = 1"])
    batch = await stage.submit(order, concurrency=7)
    assert (await batch.result()).ended == {order.key.job: JobStatus.FAILED}
    (begun,) = events_of(await batch.fetch_history(), "WORKFLOW_EXECUTION_STARTED")
    own = begun.workflow_execution_started_event_attributes.input
    unsigned = Payloads(payloads=[Payload(data=b"{}", metadata={"encoding": b"json/plain"})])
    client = await stranger(stage)
    control = Control(stage.client, stage.store)
    for given in (Payloads(), own, unsigned):
        await _start_raw(client, stage, batch.id, given, "BatchWorkflow")
        newest = stage.client.get_workflow_handle(batch.id)
        if given is own:
            await newest.terminate()
        else:
            await _over(newest)
        held = await figures(stage.client, stage.batch)
        assert held is not None and held.concurrency == 7
    # On a queue of nobody's.
    running = await client.start_workflow("BatchWorkflow", {}, id=batch.id, task_queue="nobody")
    with pytest.raises(InputError, match="; and it runs: terminate it in Temporal"):
        await retry(control, stage.batch, [order.key.job])
    await running.terminate()
    assert await retry(control, stage.batch, [order.key.job]) == {}
    anew = stage.client.get_workflow_handle(batch.id)
    assert len(await _signals(anew, "retry")) == 1
    await anew.terminate()


async def _in_archive(stage: Stage, order: JobOrder) -> bool:
    return bool(stage.archive(order.spec).runs())


async def _signals(handle: WorkflowHandle[Any, Any], name: str) -> list[Payloads]:
    """What a workflow was given by the signals of that name, once there is one."""
    told: list[Payloads] = []

    async def any_told() -> bool:
        # One that comes in the midst of a task is in the history when that has ended.
        signals = [
            event.workflow_execution_signaled_event_attributes
            for event in events_of(await handle.fetch_history(), "WORKFLOW_EXECUTION_SIGNALED")
        ]
        told[:] = [signal.input for signal in signals if signal.signal_name == name]
        return bool(told)

    await eventually(any_told, f"the history has the signal {name}")
    return told


async def test_a_strangers_query_and_update_are_refused(stage: Stage) -> None:
    """With an error; a query without input shows what the history shows, and changes nothing."""
    batch = await stage.begin_batch()
    spec = stage.spec(WAITS)
    order = JobOrder(key=JobKey(batch=stage.batch, job=spec.id), spec=spec, definition="")
    client = await stranger(stage)
    theirs = client.get_workflow_handle(batch.id)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await theirs.execute_update("submit", Submission(jobs=(order,), concurrency=1))
    assert isinstance(refused.value.cause, ApplicationError)
    assert refused.value.cause.type == "NotSigned"
    for values in ARGUMENTS:
        for updater in (theirs, batch):
            with pytest.raises(WorkflowUpdateFailedError):
                await updater.execute_update("submit", args=list(values))
    with pytest.raises(WorkflowUpdateFailedError):
        await theirs.execute_update("no such update")
    with pytest.raises(WorkflowQueryFailedError, match="is not signed"):
        await theirs.query("state", "hi")
    code, said = await temporal(
        stage, "workflow", "update", "execute", "-w", batch.id, "--name", "submit"
    )
    assert code != 0, said
    code, said = await temporal(
        stage, "workflow", "query", "-w", batch.id, "--type", "state", "--input", "1"
    )
    assert (code != 0, "is not signed" in said) == (True, True)
    for name in ("ask", "pause", "resume", "retry", "withdraw", "nothing"):
        for values in ARGUMENTS:
            await theirs.signal(name, args=list(values))
    nothing = {"waiting": [], "open": [], "ended": {}, "pages": [], "paused": False}
    assert await batch.query("state") == nothing
    history = await batch.fetch_history()
    assert events_of(history, "WORKFLOW_TASK_FAILED") == []
    stage.started.append(job_workflow_id(order.key))
    await batch.execute_update(BatchWorkflow.submit, Submission(jobs=(order,), concurrency=1))

    async def running() -> bool:
        return order.key.job in (await batch.query("state"))["open"] and bool(
            stage.archive(spec).runs()
        )

    await eventually(running, "the job of the batch has a run in the archive")
    await stage.client.get_workflow_handle(stage.started[-1]).cancel()
    assert (await batch.result()).ended == {spec.id: JobStatus.CANCELLED}


async def test_a_strangers_answer_ends_a_run_and_not_the_job(stage: Stage) -> None:
    """Somebody completes a model's call: the run fails by name, what it did stays, and the job goes
    on from there.
    """
    spec = stage.spec(["n = 41", {"code": "n += 1", "delay": 60}, "finish(n)"])
    handle = await stage.start(spec)
    archive = stage.archive(spec)
    run = (await handle.describe()).run_id or ""
    await eventually(lambda: bool(list(archive.attempts(run, 2))), "turn 2 is asked of the model")
    client = await stranger(stage)
    step = next(archive.steps(run))
    forged = Payload(
        metadata={"encoding": b"json/plain"},
        data=b'{"text":"","step":%s}' % step.ref.model_dump_json().encode(),
    )
    await client.workflow_service.respond_activity_task_completed_by_id(
        RespondActivityTaskCompletedByIdRequest(
            namespace=client.namespace,
            workflow_id=handle.id,
            activity_id="turn-2",
            result=Payloads(payloads=[forged]),
        ),
        retry=True,
    )
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert isinstance(caught.value.cause, ApplicationError)
    assert caught.value.cause.message.startswith(
        f"a payload of activity turn-2 of workflow {handle.id} is not signed"
    )
    outcome = await Control(stage.client, stage.store).outcome(
        JobKey(batch=stage.batch, job=spec.id)
    )
    assert outcome is not None
    assert (outcome.status, outcome.reason.startswith("the workflow failed: ")) == (
        JobStatus.FAILED,
        True,
    )
    key = JobKey(batch=stage.batch, job=spec.id)
    order = ReplayOrder(
        id="again",
        start=2,
        source=RunName(batch=key.batch, job=key.job, run=run),
        statement="n += 1",
    )
    made = await reset(stage.client, stage.store, key, order)
    done = await outcome_of_reset(stage.client, made)
    assert (done.status, archive.end(made.run).result) == (JobStatus.SUCCEEDED, 42)
    stage.started.clear()


async def test_a_result_by_a_stranger_is_none(stage: Stage) -> None:
    """Somebody else's worker completes a workflow: its result is not believed, and said so."""
    key = JobKey(batch=stage.batch, job="stolen")
    client = await stranger(stage)
    queue = f"{stage.queue}-stolen"
    async with Worker(
        client, task_queue=queue, workflows=[Stolen], workflow_runner=UnsandboxedWorkflowRunner()
    ):
        spec = stage.spec(["finish(1)"], id="stolen")
        order = JobOrder(key=key, spec=spec, definition="")
        handle = await stage.client.start_workflow(
            JobWorkflow.run, order, id=job_workflow_id(key), task_queue=queue
        )
        with pytest.raises(NotSigned) as caught:
            await handle.result()
    assert caught.value.refusal is Refusal.UNSIGNED
    outcome = await Control(stage.client, stage.store).outcome(key)
    assert outcome is not None
    assert (outcome.status, outcome.reason) == (
        JobStatus.FAILED,
        (
            f"ended from outside: a payload of workflow {handle.id} is not signed: it was not given"
            " by Holdfast"
        ),
    )


async def _start_raw(
    client: Client, stage: Stage, workflow_id: str, given: Payloads, kind: str = "JobWorkflow"
) -> WorkflowHandle[Any, Any]:
    limit = Duration()
    limit.FromTimedelta(TASK_LIMIT)
    await client.workflow_service.start_workflow_execution(
        StartWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_id=workflow_id,
            workflow_type=WorkflowType(name=kind),
            task_queue=TaskQueue(name=stage.queue),
            input=given,
            workflow_task_timeout=limit,
            request_id=uuid.uuid4().hex,
        ),
        retry=True,
    )
    return client.get_workflow_handle(workflow_id)


async def _signal_raw(client: Client, workflow_id: str, name: str, given: Payloads) -> None:
    await client.workflow_service.signal_workflow_execution(
        SignalWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=workflow_id),
            signal_name=name,
            input=given,
        ),
        retry=True,
    )
