"""A worker and a client of somebody else run jobs, beside what they had before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from temporalio import activity, workflow
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

import holdfast
import runtime
from activities import tracing
from runtime.archive.reader import JobReader
from runtime.archive.stores import open_store
from runtime.base.errors import InputError
from runtime.base.spec.models import JobSpec
from runtime.base.trace_ids import trace_id, turn_span_id
from runtime.base.values import JobKey
from tests.eventually import eventually
from tests.workflow.stage import events_of
from workflows.messages import JobOrder

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.server]
assert runtime  # Loaded by its plain name: these tests look at the same classes as the plugin.

JOBS = """
batch: plugin
defaults: {workspace: .}
jobs:
  - {id: quick, goal: g, model: scripted/quick.json}
  - {id: slow, goal: g, model: scripted/slow.json, tools: ["mine:hold"]}
  - {id: sleepy, goal: g, model: scripted/sleepy.json}
"""
TOOLS = """
import time
from pathlib import Path
def hold() -> None:
    (Path(__file__).parent / "held").touch()
    time.sleep(600)
"""


@activity.defn
async def fail(word: str) -> str:
    """An activity of theirs whose error is one that Holdfast would tell otherwise."""
    raise InputError(f"no {word}") from ValueError("the cause")


@workflow.defn
class Failing:
    """A workflow with an activity of theirs."""

    @workflow.run
    async def run(self, word: str) -> str:
        once = RetryPolicy(maximum_attempts=1)
        return await workflow.execute_activity(
            fail, word, start_to_close_timeout=timedelta(minutes=1), retry_policy=once
        )


@workflow.defn
class Theirs:
    """A workflow in the sandbox, with a job as its child."""

    @workflow.run
    async def run(self, job: holdfast.Job) -> list[str]:
        done = await holdfast.execute_job(job)
        return [done.status, str(done.result), done.archive]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A jobs file with its scripts and tools, and a state directory."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HOLDFAST_KEY", raising=False)
    monkeypatch.delenv("HOLDFAST_STORE", raising=False)
    (tmp_path / "jobs.yaml").write_text(JOBS)
    (tmp_path / "mine.py").write_text(TOOLS)
    (tmp_path / "quick.json").write_text('[{"code": "finish(3)"}]')
    (tmp_path / "slow.json").write_text('[{"code": "hold()"}]')
    (tmp_path / "sleepy.json").write_text('[{"code": "wait(2)"}, {"code": "finish(1)"}]')
    return tmp_path


@asynccontextmanager
async def working(
    temporal: WorkflowEnvironment, queue: str, plugin: holdfast.HoldfastPlugin | None = None
) -> AsyncIterator[Client]:
    """A client with the plugin, and a worker of it."""
    address = temporal.client.service_client.config.target_host
    client = await Client.connect(
        address,
        namespace=temporal.client.namespace,
        plugins=[plugin or holdfast.HoldfastPlugin()],
    )
    async with Worker(client, task_queue=queue, workflows=[Theirs, Failing], activities=[fail]):
        yield client


async def test_a_job_is_a_child(temporal: WorkflowEnvironment, folder: Path) -> None:
    """Its result and its archive's address, which may be a ``Path``, come back, through the
    project's own data converter.
    """
    job = holdfast.jobs_of(folder / "jobs.yaml")["quick"]
    plugin = holdfast.HoldfastPlugin(folder / "home" / "archive")
    async with working(temporal, "child", plugin) as client:
        told = await client.execute_workflow(
            Theirs.run, job.named("other"), id="theirs-1", task_queue="child"
        )
    assert told == ["succeeded", "3", str(folder / "home" / "archive")]
    reader = JobReader(open_store(str(folder / "home" / "archive")), "plugin", "other")
    assert [step.turn for step in reader.steps()] == [1]


async def test_a_cancelled_workflow_cancels_its_job(
    temporal: WorkflowEnvironment, folder: Path
) -> None:
    """The job ends as cancelled, in the archive too, though a tool blocks."""
    job = holdfast.jobs_of(folder / "jobs.yaml")["slow"]
    async with working(temporal, "cancelled") as client:
        handle = await client.start_workflow(Theirs.run, job, id="theirs-2", task_queue="cancelled")
        await eventually(lambda: (folder / "held").exists(), "the tool runs")
        await handle.cancel()
        child = client.get_workflow_handle("holdfast/plugin/slow")
        reader = JobReader(open_store(str(folder / "home" / "archive")), "plugin", "slow")

        async def ended() -> bool:
            run = (await child.describe()).run_id
            end = await asyncio.to_thread(reader.end, run or "")
            return end is not None and end.status == "cancelled"

        await eventually(ended, "the job's end is archived as cancelled")


async def test_a_job_that_is_asked_between_two_tasks_goes_on_at_the_next(
    temporal: WorkflowEnvironment, folder: Path
) -> None:
    """It slept while no worker was there, and one that comes begins with a query: it has slept
    enough.
    """
    job = holdfast.jobs_of(folder / "jobs.yaml")["sleepy"]
    key, spec = JobKey(batch=job.batch, job=job.id), JobSpec.model_validate(job.definition)

    async def timers(kind: str, number: int) -> bool:
        return len(events_of(await handle.fetch_history(), f"TIMER_{kind}")) == number

    async with working(temporal, "asked") as client:
        handle = await client.start_workflow(
            "JobWorkflow",
            JobOrder(key=key, spec=spec, definition=""),
            id="holdfast/plugin/sleepy",
            task_queue="asked",
            task_timeout=timedelta(seconds=2),
        )
        # Behind the one with which a job falls asleep.
        await eventually(lambda: timers("STARTED", 2), "the job sleeps")
    # Beside one task: a worker that comes begins with one of them, most times.
    asking = [
        asyncio.create_task(handle.query("progress", rpc_timeout=timedelta(seconds=10)))
        for _ in range(8)
    ]
    await eventually(lambda: timers("FIRED", 2), "the end of the sleep")
    async with working(temporal, "asked"):
        await asyncio.gather(*asking, return_exceptions=True)
        assert (await handle.result())["status"] == "succeeded"
    assert await timers("STARTED", 2)


async def test_activities_of_others_are_let_alone(
    temporal: WorkflowEnvironment, folder: Path
) -> None:
    """What goes through Holdfast's interceptors is what jobs do: an error of another workflow's
    activity keeps its cause.
    """
    async with working(temporal, "failing") as client:
        with pytest.raises(WorkflowFailureError) as caught:
            await client.execute_workflow(Failing.run, "word", id="theirs-3", task_queue="failing")
    error = caught.value.cause.cause
    assert isinstance(error, ApplicationError)
    assert (error.type, error.message) == ("InputError", "no word")
    assert isinstance(error.cause, ApplicationError)
    assert error.cause.type == "ValueError"


async def test_a_worker_whose_client_has_no_plugin_is_refused(
    temporal: WorkflowEnvironment, folder: Path
) -> None:
    """It could not read what jobs are given; the error says what to do."""
    address = temporal.client.service_client.config.target_host
    client = await Client.connect(address, namespace=temporal.client.namespace)
    with pytest.raises(
        InputError, match=r"give HoldfastPlugin to Client.connect\(plugins=\[...\]\)"
    ):
        Worker(client, task_queue="q", workflows=[Theirs], plugins=[holdfast.HoldfastPlugin()])


async def test_jobs_are_traced_through_ones_own_provider(
    temporal: WorkflowEnvironment, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job's spans go to the provider that the plugin was given, with its resource and the ids of
    the run; the provider's other spans keep their own, and another provider is refused.
    """
    monkeypatch.setattr(tracing, "_begun", [])
    provider, kept = (
        TracerProvider(resource=Resource({"service.name": "ours"})),
        InMemorySpanExporter(),
    )
    provider.add_span_processor(SimpleSpanProcessor(kept))
    job = holdfast.jobs_of(folder / "jobs.yaml")["quick"]
    plugin = holdfast.HoldfastPlugin(tracer_provider=provider)
    with provider.get_tracer("theirs").start_as_current_span("around"):
        async with working(temporal, "traced", plugin) as client:
            await client.execute_workflow(Theirs.run, job, id="theirs-traced", task_queue="traced")
    (run,) = holdfast.JobReader(
        open_store(str(folder / "home" / "archive")), "plugin", "quick"
    ).runs()
    spans = {span.name: span for span in kept.get_finished_spans()}
    turn, around = spans["turn 1"], spans["around"]
    ids = turn.get_span_context()
    assert ids is not None
    assert (f"{ids.trace_id:032x}", f"{ids.span_id:016x}") == (trace_id(run), turn_span_id(run, 1))
    assert turn.resource.attributes["service.name"] == "ours"
    assert around.get_span_context().trace_id != ids.trace_id  # type: ignore[union-attr]
    assert {span.attributes.get("holdfast.job", "quick") for span in spans.values()} == {"quick"}
    other = holdfast.HoldfastPlugin(tracer_provider=TracerProvider())
    with pytest.raises(InputError, match="sends its traces elsewhere already"):
        async with working(temporal, "traced", other):
            pass
    wrong = holdfast.HoldfastPlugin(tracer_provider="here")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"expected a TracerProvider of opentelemetry\.sdk"):
        async with working(temporal, "traced", wrong):
            pass
