"""Sub-jobs: what a statement starts runs beside its job, on a part of its budget, and once."""

from __future__ import annotations

from typing import Any

import pytest
from stage import Stage, activities_of, events_of, replayer
from temporalio.client import WorkflowHandle

from runtime.archive.job import JobArchive
from runtime.archive.verify import damage, verify_job
from runtime.base.redaction.rules import Redaction
from runtime.base.spec.models import (
    Amount,
    BatchBudget,
    BatchSpec,
    Budget,
    JobSpec,
    ModelSettings,
    Spawn,
)
from runtime.base.values import JobKey
from runtime.base.workflow_ids import batch_workflow_id, job_workflow_id
from runtime.client.control import Control
from runtime.client.planning import plan_batch
from runtime.client.submission import submit
from runtime.interpreter.spawning import SpawnRequest
from runtime.job.stops import JobStatus
from runtime.worker.worker import make_worker
from tests.eventually import eventually, progress_of, until_phase
from tests.reset_by_hand import reset_by_hand
from workflows.job import JobWorkflow
from workflows.messages import JobOrder, JobOutcome, Note, batch_queue
from workflows.sub_jobs import name_of

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

LENT = Amount(turns=5, tokens=100_000, usd=0.5)


def parent_of(stage: Stage, replies: list[str], child: list[str], **options: Any) -> JobSpec:
    """A job whose sub-jobs have a script of their own."""
    spawn = Spawn(turns=5, tokens=100_000, usd=0.5, model=ModelSettings(name=stage.script(child)))
    return stage.spec(
        replies,
        spawn=spawn.model_copy(update=options.pop("spawn", {})),
        budget=Budget(turns=40, tokens=10**7, usd=100.0),
        **options,
    )


def children_of(stage: Stage) -> list[str]:
    """The sub-jobs in the archive of the test's batch."""
    jobs = {key.split("/")[1] for key in stage.store.list(f"{stage.batch}/")}
    return sorted(job for job in jobs if "." in job)


async def child_handle(stage: Stage, number: int = 0) -> WorkflowHandle[Any, JobOutcome]:
    """A handle of a sub-job that has begun."""
    await eventually(lambda: len(children_of(stage)) > number, "the sub-job began")
    key = JobKey(batch=stage.batch, job=children_of(stage)[number])
    return stage.client.get_workflow_handle(job_workflow_id(key), result_type=JobOutcome)


@pytest.mark.smoke
async def test_a_job_waits_for_its_sub_job_and_sees_its_result(stage: Stage) -> None:
    """It sleeps until that ends, then its view shows the result, and its budget counts it."""
    spec = parent_of(
        stage,
        ["a = spawn('Count.', result={'type': 'object'})", "wait_for(a)", "finish(a.text)"],
        # It ends when its job waits for it: on a busy machine it might have before.
        ["x = 41\nwait(86_400)", "finish({'answer': x + 1})"],
    )
    handle = await stage.start(spec)
    child = await child_handle(stage)
    await until_phases([handle, child], *["asleep"] * 2)
    await child.signal("message", Note.of("Go on."))
    outcome = await handle.result()
    archive = stage.archive(spec)
    assert outcome.status is JobStatus.SUCCEEDED
    assert outcome.lent is not None
    assert (outcome.turns, outcome.lent.turns) == (3, 2)
    end = archive.end(outcome.run)
    assert end is not None
    assert end.result.startswith('# Status\n\nsucceeded: finished, 2 turns\n\n{\n  "answer": 42\n}')
    assert end.lent == outcome.lent
    step = archive.find_step(outcome.run, 3)
    assert step is not None
    assert [(one.status, one.turns) for one in step.interim.ended] == [("succeeded", 2)]
    assert step.interim.woken.endswith("woken by the end of a")
    [name] = children_of(stage)
    definition = JobArchive(stage.store, stage.batch, name).definition()
    assert definition is not None
    assert (definition["parent"], definition["goal"]) == (spec.id, "Count.")
    assert Budget.model_validate(definition["budget"]).turns == LENT.turns
    stage.started.append(child.id)


async def test_a_secret_that_a_goal_is_put_together_with_is_masked(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By value, as in all else that a statement makes: in the definition, and in every prompt."""
    monkeypatch.setenv("HOUSE_WORD", "sesame-of-the-house")
    spec = parent_of(
        stage,
        [
            "a = spawn('Say ' + 'sesame-of' + '-the-house.', result={'title': 'sesame-' + 'of-the-house'})",
            "wait_for(a)",
            "finish(1)",
        ],
        ["finish({})"],
        redact=Redaction(env=("HOUSE_WORD",)),
    )
    assert (await (await stage.start(spec)).result()).status is JobStatus.SUCCEEDED
    [child] = children_of(stage)
    archive = JobArchive(stage.store, stage.batch, child)
    definition = archive.definition()
    assert definition is not None
    assert definition["goal"].startswith("Say [masked:HOUSE_WORD")
    assert "sesame-of-the-house" not in str(definition)
    assert damage(verify_job(archive)) == []
    stage.started.append(job_workflow_id(JobKey(batch=stage.batch, job=child)))


async def test_a_wait_for_sub_jobs_that_have_ended_is_none(stage: Stage) -> None:
    """Of two, the wait ends with the first; with both over, it returns at once."""
    spec = parent_of(
        stage,
        [
            "a = spawn('One.'); b = spawn('Two.'); s = group(a, b)",
            "wait_for(a)",
            "wait_for(b)",
            "wait_for(a, b)",
            "wait_for(s)",
            "finish([a.mode, b.mode, a.text == b.text])",
        ],
        ["finish(1)"],
    )
    outcome = await (await stage.start(spec)).result()
    end = stage.archive(spec).end(outcome.run)
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 6)
    assert end is not None
    assert end.result == ["paused", "paused", False]


async def test_a_job_that_is_reset_finds_its_sub_job(stage: Stage) -> None:
    """The statement is executed again, in another run; the sub-job was started once, and ends."""
    spec = parent_of(
        stage,
        ["a = spawn('Wait.')", "wait_for(a)", "finish(a.text)"],
        ["wait(86_400)", "finish('late')"],
    )
    handle = await stage.start(spec)
    child = await child_handle(stage)
    await until_phase(child, "asleep")
    await until_phase(handle, "asleep")
    before = await child.describe()
    archive = stage.archive(spec)
    [run] = archive.runs()
    step = archive.find_step(run, 1)
    assert step is not None
    await reset_by_hand(stage.client, handle.id, step.reset_event_id)
    await eventually(lambda: len(archive.runs()) == 2, "the job runs anew")
    again: WorkflowHandle[Any, JobOutcome] = stage.client.get_workflow_handle(
        handle.id, result_type=JobOutcome
    )
    await until_phase(again, "asleep")
    after = await child.describe()
    assert (after.run_id, children_of(stage)) == (before.run_id, [child.id.rpartition("/")[2]])
    await child.signal("message", Note.of("Go on."))
    outcome = await again.result()
    assert outcome.status is JobStatus.SUCCEEDED
    assert outcome.lent is not None
    assert outcome.lent.turns == 2
    assert archive.end(outcome.run).result.startswith("# Status\n\nsucceeded: finished, 2 turns")  # type: ignore[union-attr]


async def test_a_job_that_ends_cancels_its_sub_jobs(stage: Stage) -> None:
    """However it ends; what they had spent by then is counted."""
    spec = parent_of(
        stage,
        ["a = spawn('One.'); b = spawn('Two.')", "wait(86_400)"],
        ["wait(86_400)"],
    )
    handle = await stage.start(spec)
    children = await child_handles(stage, 2)
    await until_phases([handle, *children], *["asleep"] * 3)
    await handle.cancel()
    outcome = await handle.result()
    assert outcome.status is JobStatus.CANCELLED
    assert outcome.lent is not None
    assert outcome.lent.turns == 2
    assert [(await child.result()).status for child in children] == [JobStatus.CANCELLED] * 2


async def test_a_sub_job_that_was_terminated_may_have_spent_all(stage: Stage) -> None:
    """No record says what it cost: its job, and so the batch, counts all that it was lent."""
    spec = parent_of(stage, ["a = spawn('One.')", "wait(86_400)"], ["wait(86_400)"])
    handle = await stage.start(spec)
    child = await child_handle(stage)
    await until_phase(child, "asleep")
    await until_phase(handle, "asleep")
    await child.terminate()
    await handle.cancel()
    assert (await handle.result()).lent == LENT


async def test_what_is_not_there_is_not_lent(stage: Stage) -> None:
    """The statement is told why: too many, too much, nothing left, no goal, none allowed."""
    spec = parent_of(
        stage,
        [
            "spawn('One.', turns=99)",
            "spawn(' ')",
            "spawn('One.', result={'type': 'nothing'})",
            "a = spawn('One.'); spawn('Two.')",
            "finish(1)",
        ],
        ["finish(1)"],
        spawn={"max": 1},
    )
    outcome = await (await stage.start(spec)).result()
    archive = stage.archive(spec)
    told = [
        archive.find_step(outcome.run, turn).execution["exception"]["message"]  # type: ignore[union-attr,index]
        for turn in range(2, 6)
    ]
    assert told[0] == "spawn(): turns=99 is more than can be lent: 35"
    assert told[1] == "spawn(): goal is a text that says what the sub-job is to do"
    assert told[2].startswith("spawn(): result: expected a JSON Schema: type: 'nothing' is")
    assert told[3] == "spawn(): this job may start 1 sub-job, and has"
    assert len(children_of(stage)) == 1


async def test_what_its_batch_has_no_budget_for_is_not_lent(stage: Stage) -> None:
    """The statement is told why, and the job goes on."""
    spec = parent_of(
        stage,
        ["try:\n    spawn('One.')\nexcept RuntimeError as error:\n    finish(str(error))"],
        ["finish(1)"],
    )
    order = JobOrder(
        key=JobKey(batch=stage.batch, job=spec.id),
        spec=spec,
        definition="",
        granted=Amount(turns=40, tokens=60_000, usd=100.0),
        refused="nothing is left of the batch's budget",
    )
    handle = await stage.client.start_workflow(
        JobWorkflow.run, order, id=job_workflow_id(order.key), task_queue=stage.queue
    )
    stage.started.append(handle.id)
    outcome = await handle.result()
    end = stage.archive(spec).end(outcome.run)
    assert end is not None
    assert end.result == "spawn(): nothing is left of the batch's budget"
    assert children_of(stage) == []


async def test_a_job_whose_sub_job_is_more_than_its_batch_has_goes_on(stage: Stage) -> None:
    """With slice after slice, for its own calls and for a sub-job that is lent less."""
    replies = [
        "try:\n    spawn('One.', turns=25)\nexcept RuntimeError as error:\n    told = str(error)",
        *["x = 1"] * 8,
        "a = spawn('Another.', turns=2)",
        "wait_for(a)",
        "finish(told)",
    ]
    spec = parent_of(stage, replies, ["finish(2)"])
    batch = BatchSpec(batch=stage.batch, concurrency=1, jobs=(spec,), budget=BatchBudget(turns=20))
    control = Control(stage.client, stage.store)
    handle = stage.client.get_workflow_handle(batch_workflow_id(stage.batch))
    async with make_worker(stage.client, stage.store, task_queue=batch_queue(stage.batch)):
        await submit(control, await plan_batch(control, batch, rerun_failed=False))
        assert (await handle.result())["ended"] == {spec.id: "succeeded"}
    key = JobKey(batch=stage.batch, job=spec.id)
    job = stage.client.get_workflow_handle(job_workflow_id(key))
    await replayer().replay_workflow(await job.fetch_history())
    [run] = stage.archive(spec).runs()
    end = stage.archive(spec).end(run)
    assert end is not None
    assert end.result == (
        "spawn(): 25 turns, 100,000 tokens, $0.50 cannot be lent: what is left of the batch's"
        " budget (20 turns) holds no other call"
    )
    assert len(children_of(stage)) == 1


async def test_a_schema_that_cannot_be_checked_starts_no_sub_job(stage: Stage) -> None:
    """One that leads nowhere, in a circle, to a file or to what takes for ever."""
    schemas = [
        "{'type': 'array', 'items': {'$ref': '#/definitions/Item'}}",
        "{'$ref': '#'}",
        "{'$ref': 'file:///etc/hostname'}",
        "{'pattern': '(?=a)'}",
    ]
    spec = parent_of(
        stage,
        [*(f"spawn('One.', result={schema})" for schema in schemas), "finish(1)"],
        ["finish([1])"],
    )
    outcome = await (await stage.start(spec)).result()
    archive = stage.archive(spec)
    told = [
        archive.find_step(outcome.run, turn).execution["exception"]["message"]  # type: ignore[union-attr,index]
        for turn in range(2, 6)
    ]
    assert all(text.startswith("spawn(): result: expected a JSON Schema: ") for text in told)
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 5)
    assert children_of(stage) == []


async def test_sub_jobs_have_sub_jobs_as_deep_as_is_allowed(stage: Stage) -> None:
    """A sub-job of the last generation has no spawn."""
    deep = ["a = spawn('Deeper.')", "wait_for(a)", "finish(1)"]
    spec = parent_of(stage, deep, deep, spawn={"depth": 2, "turns": 10})
    outcome = await (await stage.start(spec)).result()
    jobs = children_of(stage)
    assert [job.count(".") for job in jobs] == [1, 2]
    bottom = JobArchive(stage.store, stage.batch, jobs[1])
    step = bottom.find_step(bottom.runs()[0], 2)
    assert step is not None
    assert step.execution is not None
    assert step.execution["exception"]["message"].startswith("line 1, column 5: error")
    assert outcome.lent is not None
    assert (outcome.status, outcome.turns, outcome.lent.turns) == (JobStatus.SUCCEEDED, 3, 6)


async def test_a_job_without_spawn_has_the_commands_that_it_had(stage: Stage) -> None:
    """Nothing of sub-jobs is in its history, and the checker does not know the name."""
    outcome, archive = await stage.run(["spawn('x')", "finish(1)"])
    assert activities_of(await stage.history()) == ["begin", "turn-1", "turn-2", "end"]
    step = archive.find_step(outcome.run, 2)
    assert step is not None
    assert step.execution is not None
    assert "spawn" in step.execution["exception"]["message"]


async def test_a_job_that_is_begun_anew_starts_its_sub_jobs_anew(stage: Stage) -> None:
    """A sub-job has the name that the order and the question give it, and no run of either."""
    spec = stage.spec(["finish(1)"])
    order = JobOrder(key=JobKey(batch=stage.batch, job="a" * 200), spec=spec, definition="", id="1")
    asked = SpawnRequest(goal="One.", lent=LENT, call="sha256:1")
    name = name_of(order, asked)
    others = [
        name_of(order.model_copy(update={"id": "2"}), asked),
        name_of(order, asked.model_copy(update={"number": 1})),
        name_of(order, asked.model_copy(update={"call": "sha256:2"})),
    ]
    assert name == name_of(order, asked.model_copy(update={"lent": Amount(turns=1)}))
    assert len({name, *others}) == 4
    assert len(name) == 91


async def child_handles(stage: Stage, number: int) -> list[WorkflowHandle[Any, JobOutcome]]:
    """Handles of sub-jobs of which so many have begun: their names are in no order."""
    await eventually(lambda: len(children_of(stage)) == number, "the sub-jobs began")
    return [await child_handle(stage, one) for one in range(number)]


async def until_phases(handles: list[WorkflowHandle[Any, JobOutcome]], *expected: str) -> None:
    """Wait until the jobs stand so."""
    for handle, phase in zip(handles, expected, strict=True):
        await until_phase(handle, phase)


async def until_told(handle: WorkflowHandle[Any, JobOutcome], number: int = 1) -> None:
    """Wait until a sub-job was told so often by its parent that it is paused, or goes on."""

    async def told() -> bool:
        signals = events_of(await handle.fetch_history(), "WORKFLOW_EXECUTION_SIGNALED")
        names = [one.workflow_execution_signaled_event_attributes.signal_name for one in signals]
        return names.count("hold") == number

    await eventually(told, "the sub-job is told")


async def test_a_job_is_paused_with_its_sub_jobs(stage: Stage) -> None:
    """In the midst of its wait for them. Those that were paused with it go on with it; one that
    somebody has paused by itself stays paused, and one goes on that somebody wants to.
    """
    spec = parent_of(
        stage,
        ["a = spawn('One.'); b = spawn('Two.'); c = spawn('Three.')", "wait_for(a)"],
        ["wait(86_400)", "wait(86_400)", "finish('late')"],
    )
    handle = await stage.start(spec)
    children = await child_handles(stage, 3)
    await until_phases([handle, *children], *["asleep"] * 4)
    own, _, free = children
    await own.signal("pause", Note.of())
    assert (await own.query(JobWorkflow.progress)).paused
    await handle.signal("pause", Note.of())
    assert (await handle.query(JobWorkflow.progress)).paused
    for child in children:
        await until_told(child)
        await child.signal("message", Note.of("Go on."))
    await until_phases(children, *["paused"] * 3)
    await free.signal("resume", Note.of())
    await until_phases(children, "paused", "paused", "asleep")
    await handle.signal("resume", Note.of())
    await until_phases(children, "paused", "asleep", "asleep")
    await own.signal("resume", Note.of())
    await until_phases(children, *["asleep"] * 3)
    await handle.cancel()
    assert (await handle.result()).status is JobStatus.CANCELLED
    assert [(await child.result()).status for child in children] == [JobStatus.CANCELLED] * 3
    stage.started += [child.id for child in children]


async def test_a_pause_reaches_every_generation_and_what_is_begun_meanwhile(stage: Stage) -> None:
    """A job that begins paused holds what it starts; by a sub-job, that holds its own."""
    deep = ["a = spawn('Deeper.')", "wait_for(a)", "finish(1)"]
    # Enough turns for both: one that has spent its own ends, and hears nothing.
    below = [deep[0], "wait(86_400)", "finish(1)"]
    spec = parent_of(stage, deep, below, spawn={"depth": 2, "turns": 20})
    handle = await stage.start(spec)
    child, grandchild = await child_handles(stage, 2)
    await until_phases([handle, child, grandchild], *["asleep"] * 3)
    await handle.signal("pause", Note.of())
    await until_told(grandchild)
    await handle.signal("resume", Note.of())
    await until_told(grandchild, 2)
    await child.signal("message", Note.of("Go on."))
    assert (await handle.result()).status is JobStatus.SUCCEEDED
    stage.started += [child.id, grandchild.id]


async def test_a_job_that_is_reset_while_it_is_paused_has_its_sub_job_go_on(stage: Stage) -> None:
    """The run that was reset knows of no sub-job when it is resumed; the one that it then finds
    was held by the run before.
    """
    spec = parent_of(
        stage,
        ["a = spawn('Wait.')", "wait_for(a)", "finish(a.text)"],
        ["wait(86_400)", "wait(86_400)", "finish('late')"],
    )
    handle = await stage.start(spec)
    [child] = await child_handles(stage, 1)
    await until_phases([handle, child], "asleep", "asleep")
    archive = stage.archive(spec)
    step = archive.find_step(archive.runs()[0], 1)
    assert step is not None
    await handle.signal("pause", Note.of())
    await until_told(child)
    await child.signal("message", Note.of("Go on."))
    await until_phase(child, "paused")
    await reset_by_hand(stage.client, handle.id, step.reset_event_id)
    again: WorkflowHandle[Any, JobOutcome] = stage.client.get_workflow_handle(
        handle.id, result_type=JobOutcome
    )
    await until_phase(again, "paused")
    await again.signal("resume", Note.of())
    await until_phase(child, "asleep")
    await child.signal("message", Note.of("Go on."))
    assert (await again.result()).status is JobStatus.SUCCEEDED
    assert children_of(stage) == [child.id.rpartition("/")[2]]
    stage.started.append(child.id)


async def test_pauses_in_mid_statement_are_told_alike_in_a_replay(stage: Stage) -> None:
    """Signals come while verdicts are recorded, with queries that part a worker's view of them
    from a replay's: the commands stand in the same order.
    """
    spec = parent_of(
        stage,
        ["a = spawn('One.')", *["x = 1"] * 8, "wait_for(a)", "finish(1)"],
        # Neither ends before the last of them, on however busy a machine.
        [*["x = 1"] * 3, "wait(86_400)", "finish(1)"],
    )
    handle = await stage.start(spec)
    [child] = await child_handles(stage, 1)
    for _ in range(6):
        await handle.signal("pause", Note.of())
        await progress_of(handle)
        await handle.signal("resume", Note.of())
    await until_phase(child, "asleep")
    await child.signal("message", Note.of("Go on."))
    outcome = await handle.result()
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 11)
    stage.started.append(child.id)
