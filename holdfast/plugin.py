"""Jobs in a worker and a client that one has: the worker runs them beside its own workflows, which
can start one as a child.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temporalio import activity, workflow
from temporalio.client import ClientConfig
from temporalio.plugin import SimplePlugin
from temporalio.worker import UnsandboxedWorkflowRunner, Worker, WorkerConfig
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

with workflow.unsafe.imports_passed_through():
    from holdfast import rooms
    from holdfast.arguments import check_type
    from holdfast.results import JobResult
    from runtime.archive.job import JobArchive
    from runtime.archive.stores import ObjectStore
    from runtime.base.errors import InputError
    from runtime.base.quoted import shown
    from runtime.base.spec.models import JobSpec
    from runtime.base.values import JobKey
    from runtime.base.workflow_ids import TASK_LIMIT, job_workflow_id, summary_of
    from runtime.cli.stores import archive_of
    from runtime.cli.telemetry import begin_traces, flush_traces
    from runtime.client.masking import masked_spec
    from runtime.client.preflight import check
    from runtime.jobsfile.changes import definition_digest
    from runtime.jobsfile.load import load
    from runtime.jobsfile.written.names import NAME_RULE, is_name
    from runtime.server.authentic.encryption import encryption_keys
    from runtime.server.authentic.key import key_of
    from runtime.server.authentic.shared import is_shared, shared_converter
    from runtime.worker.only_jobs import OnlyJobs
    from runtime.worker.parts import Parts, make_parts
    from runtime.worker.taskwise import OnlyJobsTaskwise
    from runtime.worker.worker import (
        CALLS,
        HEARTBEAT_INTERVAL,
        MOST_WORKFLOW_TASKS,
        allow_long_activations,
        warm_up,
    )
    from workflows.batch import BatchWorkflow
    from workflows.doors import Door
    from workflows.job import JobWorkflow
    from workflows.messages import JobOrder, JobOutcome

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

__all__ = ["HoldfastPlugin", "Job", "execute_job", "jobs_of"]

RESULT = "holdfast_result"
"""The activity that reads a job's end out of the archive."""


@dataclass(frozen=True)
class Job:
    """A job of a jobs file, as plain values: any data converter can hand it to a workflow."""

    batch: str
    id: str
    definition: dict[str, Any]

    def named(self, id: str) -> Job:
        """The same job under another id: each id has one record in the archive.

        Raises:
            InputError: if no job may be called so.
        """
        check_type("id", id, str)
        if not is_name(id):
            raise InputError(f"expected a name ({NAME_RULE}), got {shown(id)}")
        return Job(self.batch, id, {**self.definition, "id": id})


def jobs_of(jobs_file: str | Path) -> dict[str, Job]:
    """The jobs that a jobs file describes, by their ids.

    What a worker alone can tell is not looked for here: providers' keys and packages, secrets and
    sandboxes.

    Raises:
        InputError: with every problem, by line.
    """
    check_type("jobs_file", jobs_file, os.PathLike)
    loaded = load(jobs_file)
    # The archive is the plugin's. Whoever gives the jobs to a workflow need not have what runs
    # them.
    check(loaded, store=None, here=frozenset())
    batch = loaded.batch
    specs = [masked_spec(spec) for spec in batch.jobs]
    for spec in specs:
        for tool in spec.tools:
            if tool.queue is not None:
                raise InputError(
                    f"job {spec.id}: {tool.target!r} has queue={tool.queue!r}, which goes with"
                    " 'holdfast run' alone"
                )
    return {spec.id: Job(batch.batch, spec.id, spec.model_dump(mode="json")) for spec in specs}


async def execute_job(job: Job, *, task_queue: str | None = None) -> JobResult:
    """In a workflow: run a job as a child, and wait for its end.

    A cancellation of the workflow ends the job as cancelled.

    ``task_queue`` is that of a worker with ``HoldfastPlugin``; the workflow's own if it is left
    out.

    Raises:
        InputError: it is no ``Job``, or the queue no text.
        ChildWorkflowError: the job's workflow was ended from outside. A job that fails by itself is
            a result.
    """
    if not isinstance(job, Job):
        raise InputError(f"job: expected a Job, as jobs_of has them, got {shown(job)}")
    check_type("task_queue", task_queue, str, type(None))
    spec = JobSpec.model_validate(job.definition)
    key = JobKey(batch=job.batch, job=job.id)
    definition = definition_digest(spec)
    outcome = await workflow.execute_child_workflow(
        "JobWorkflow",
        # The workflow's own random number, which a replay gives again.
        JobOrder(key=key, spec=spec, definition=definition, id=workflow.uuid4().hex),
        id=job_workflow_id(key),
        task_queue=task_queue,
        result_type=JobOutcome,
        # A job that is cancelled archives its end; one that is terminated could not.
        parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
        task_timeout=TASK_LIMIT,
        static_summary=summary_of(spec.goal),
        memo={"definition": definition},
    )
    # By an activity: the result is in the archive, which workflow code may not read.
    archived = await workflow.execute_activity(
        RESULT,
        args=[job.batch, job.id, outcome.run],
        task_queue=task_queue,
        start_to_close_timeout=timedelta(minutes=1),
    )
    return JobResult(
        batch=job.batch,
        id=job.id,
        status=outcome.status,
        reason=outcome.reason,
        result=archived["result"],
        turns=outcome.turns,
        usage=outcome.usage,
        cost_usd=outcome.cost_usd,
        archive=archived["archive"],
        run=outcome.run,
        end=None if outcome.end is None else outcome.end.key,
    )


class HoldfastPlugin(SimplePlugin):
    """For ``Client.connect(..., plugins=[HoldfastPlugin()])``; the client's workers have it too.

    What jobs are given is signed with the key of the state directory, or of ``HOLDFAST_KEY``, and
    encrypted where ``HOLDFAST_ENCRYPTION_KEYS`` is set; the
    client's own workflows keep their data converter. Every worker and client that has to do with
    these jobs needs the same key and the same archive.

    Args:
        store: the archive, a directory or ``s3://bucket/prefix``; None for that of
            ``HOLDFAST_STORE``, else the state directory's.
        allowed: where scripts, tools and workspaces are taken from; empty for wherever a job names.
        tracer_provider: where traces of jobs go, an ``opentelemetry.sdk.trace.TracerProvider``;
            None for the collector of ``HOLDFAST_TRACES``, if that is set. A process has one.

    Raises:
        InputError: there is no key that can be used; or an argument is no path.
    """

    def __init__(
        self,
        store: str | Path | None = None,
        *,
        allowed: Sequence[str | Path] = (),
        tracer_provider: TracerProvider | None = None,
    ) -> None:
        super().__init__("holdfast.HoldfastPlugin")
        check_type("store", store, os.PathLike, type(None))
        if isinstance(allowed, str | os.PathLike):
            raise InputError(f"allowed: expected several paths, got {shown(allowed)}")
        for one in allowed:
            check_type("allowed", one, os.PathLike)
        self._key = key_of()
        self._encryption = encryption_keys()
        self._store = None if store is None else os.fspath(store)
        self._allowed = tuple(map(Path, allowed))
        self._tracer_provider = tracer_provider
        self._parts: list[Parts] = []

    def configure_client(self, config: ClientConfig) -> ClientConfig:
        """See ``temporalio.client.Plugin``."""
        theirs = config["data_converter"]
        config["data_converter"] = shared_converter(theirs, self._key, self._encryption)
        return config

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """See ``temporalio.worker.Plugin``.

        Raises:
            InputError: the worker's client was not given the plugin, or traces cannot be sent.
        """
        client = config["client"]
        if not is_shared(client.data_converter):
            raise InputError(
                "give HoldfastPlugin to Client.connect(plugins=[...]): its workers have it then"
            )
        begin_traces(self._tracer_provider)
        store = archive_of(self._store)
        parts = make_parts(client, store, self._allowed)
        self._parts.append(parts)
        config["workflows"] = [*(config.get("workflows") or ()), JobWorkflow, BatchWorkflow]
        config["activities"] = [
            *(config.get("activities") or ()),
            *parts.activities,
            _Results(store).read,
        ]
        config["interceptors"] = [
            *(config.get("interceptors") or ()),
            OnlyJobs(parts.of_activities),
            Door(),
        ]
        config["activity_executor"] = config.get("activity_executor") or ThreadPoolExecutor(CALLS)
        # A tuner of the user's decides by itself: the SDK takes no such number beside it.
        if config.get("tuner") is None:
            # Each job has an interpreter's process while its task runs: no task waits for one.
            config["max_concurrent_workflow_tasks"] = min(
                config.get("max_concurrent_workflow_tasks") or MOST_WORKFLOW_TASKS,
                MOST_WORKFLOW_TASKS,
            )
        config["max_heartbeat_throttle_interval"] = HEARTBEAT_INTERVAL
        runner = config.get("workflow_runner")
        if isinstance(runner, SandboxedWorkflowRunner):
            # Loaded once, and not anew for each workflow that runs in the sandbox.
            names = ("holdfast", *rooms.ROOMS) if not rooms.are_private() else ("holdfast",)
            restrictions = runner.restrictions.with_passthrough_modules(*names)
            config["workflow_runner"] = dataclasses.replace(runner, restrictions=restrictions)
        theirs = config.get("unsandboxed_workflow_runner") or UnsandboxedWorkflowRunner()
        config["unsandboxed_workflow_runner"] = OnlyJobsTaskwise(theirs)
        return config

    async def run_worker(self, worker: Worker, next: Callable[[Worker], Awaitable[None]]) -> None:
        """See ``temporalio.worker.Plugin``."""
        allow_long_activations(worker)
        has = worker.config(active_config=True).get("activities") or ()
        # One plugin may serve several workers of a client: whose parts these are, its activities
        # tell.
        (parts,) = (parts for parts in self._parts if parts.tools.call_tool in has)
        try:
            await asyncio.to_thread(warm_up)
            async with parts.tools.open():
                await next(worker)
        finally:
            self._parts.remove(parts)
            await asyncio.to_thread(flush_traces)


class _Results:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @activity.defn(name=RESULT)
    async def read(self, batch: str, job: str, run: str) -> dict[str, Any]:
        """What a job's ``finish`` was given, and where the archive is."""
        end = await asyncio.to_thread(JobArchive(self._store, batch, job).end, run)
        return {"result": None if end is None else end.result, "archive": str(self._store)}
