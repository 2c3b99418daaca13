"""Running jobs in tests: a real worker, a real archive in a directory, scripted models, and the
Replayer at the end.
"""

from __future__ import annotations

import json
import re
import textwrap
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.api.enums.v1 import EventType, TimeoutType
from temporalio.client import Client, WorkflowHandle, WorkflowHistory
from temporalio.converter import DataConverter
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from runtime.archive.job import JobArchive
from runtime.archive.stores import open_store
from runtime.base.home import Home
from runtime.base.spec.models import Budget, JobSpec, ModelSettings
from runtime.base.values import JobKey
from runtime.base.workflow_ids import TASK_LIMIT, batch_workflow_id, job_workflow_id
from runtime.server.authentic import key_of, signed_converter
from runtime.server.embedded import NAMESPACE
from runtime.worker.worker import make_worker
from tests.servers.temporal_server import CONVERTER
from tests.workflow.prompt_rules import unexplained, violations_of
from workflows.batch import BatchWorkflow
from workflows.doors import Door
from workflows.job import JobWorkflow
from workflows.messages import (
    TASK_QUEUE,
    BatchOrder,
    BatchState,
    JobOrder,
    JobOutcome,
    Origin,
    Submission,
)

FAILS = "def respond(messages):\n    return 'no statement'\n"
"""A scripted model whose job fails: none of its replies has a statement."""


class Stage:
    """Jobs of one test. ``cached_jobs=0`` makes the worker replay at every workflow task."""

    def __init__(self, client: Client, path: Path, name: str) -> None:
        self.client = client
        self.path = path
        self.batch = re.sub(r"\W+", "-", name).strip("-")[:40] + "-" + uuid.uuid4().hex[:6]
        self.workspace = path / "workspace"
        self.workspace.mkdir(exist_ok=True)
        self.store = open_store(str(path / "archive"))
        self.started: list[str] = []
        self.queue = f"{TASK_QUEUE}-{self.batch}"
        self.address = client.service_client.config.target_host

    @asynccontextmanager
    async def open(self, *, cached_jobs: int = 100, host: str = "host") -> AsyncIterator[None]:
        """Run a worker. What jobs change is laid out on the disk of ``host``."""
        async with make_worker(
            self.client,
            self.store,
            task_queue=self.queue,
            cached_jobs=cached_jobs,
            workspaces=self.path / host,
        ):
            yield

    def script(self, replies: Sequence[Any]) -> str:
        """A scripted model that gives ``replies`` in order: statements, or mappings as in a script
        file.
        """
        lines = [
            reply if isinstance(reply, dict) else {"code": textwrap.dedent(reply).strip()}
            for reply in replies
        ]
        path = self.path / f"script-{uuid.uuid4().hex[:6]}.yaml"
        path.write_text(json.dumps(lines))
        return f"scripted/{path}"

    def spec(self, replies: Sequence[Any] | str, **options: Any) -> JobSpec:
        """A job whose model gives ``replies``, or is the model called ``replies``."""
        model = replies if isinstance(replies, str) else self.script(replies)
        settings = ModelSettings(name=model, options=options.pop("model_options", {}))
        fields = {
            "id": f"job-{len(self.started) + 1}",
            "goal": "Do what the script says.",
            "workspace": str(self.workspace),
            "budget": Budget(turns=options.pop("turns", 50), usd=1000.0, tokens=10**9),
        }
        return JobSpec(**{**fields, "model": settings, **options})

    async def start(
        self, spec: JobSpec, task_timeout: timedelta = TASK_LIMIT, origin: Origin | None = None
    ) -> WorkflowHandle[JobWorkflow, JobOutcome]:
        """Start a job by itself, without a batch."""
        key = JobKey(batch=self.batch, job=spec.id)
        order = JobOrder(key=key, spec=spec, definition="", origin=origin)
        self.started.append(job_workflow_id(key))
        return await self.client.start_workflow(
            JobWorkflow.run,
            order,
            id=job_workflow_id(key),
            task_queue=self.queue,
            task_timeout=task_timeout,
        )

    def order(self, replies: Sequence[Any] | str, **options: Any) -> JobOrder:
        """A job of the batch; see ``spec``."""
        spec = self.spec(replies, **options)
        return JobOrder(key=JobKey(batch=self.batch, job=spec.id), spec=spec, definition="d")

    async def begin_batch(self) -> WorkflowHandle[BatchWorkflow, BatchState]:
        """Start the batch, without a job."""
        return await self.client.start_workflow(
            BatchWorkflow.run,
            BatchOrder(batch=self.batch),
            id=batch_workflow_id(self.batch),
            task_queue=self.queue,
        )

    async def submit(
        self, *orders: JobOrder, **options: Any
    ) -> WorkflowHandle[BatchWorkflow, BatchState]:
        """Start the batch with these jobs; ``options`` are those of a ``Submission``."""
        handle = await self.begin_batch()
        await handle.execute_update(BatchWorkflow.submit, Submission(jobs=orders, **options))
        return handle

    def archive(self, spec: JobSpec) -> JobArchive:
        """A job's part of the archive."""
        return JobArchive(self.store, self.batch, spec.id)

    async def run(
        self, replies: Sequence[Any] | str, **options: Any
    ) -> tuple[JobOutcome, JobArchive]:
        """Run a job to its end."""
        spec = self.spec(replies, **options)
        handle = await self.start(spec)
        return await handle.result(), self.archive(spec)

    async def history(self, number: int = -1) -> WorkflowHistory:
        """The history of the ``number``-th job that was started."""
        return await self.client.get_workflow_handle(self.started[number]).fetch_history()

    def runs(self, workflow_id: str) -> tuple[str, ...]:
        """The runs of a job that are in the archive."""
        return tuple(JobArchive(self.store, self.batch, workflow_id.rpartition("/")[2]).runs())

    def check_prompts(self) -> None:
        """No prompt of any job breaks a rule of OpenAI's or Anthropic's, and no prefix moved
        without a reason.
        """
        for workflow_id in self.started:
            archive = JobArchive(self.store, self.batch, workflow_id.rpartition("/")[2])
            assert violations_of(archive) == []
            assert unexplained(archive) == []

    async def replay_all(self) -> None:
        """Replay the history of every job that was started, as a worker without a cache would."""
        for workflow_id in self.started:
            history = await self.client.get_workflow_handle(workflow_id).fetch_history()
            try:
                await replayer(converter=self.client.data_converter).replay_workflow(history)
            except Exception as error:
                # The server, and the history with it, is gone with the tests.
                error.add_note(told(history))
                raise


def replayer(home: Home | None = None, converter: DataConverter = CONVERTER) -> Replayer:
    """A replayer of Holdfast's workflows, as they ran on the embedded server of ``home``, else on a
    server of tests, for clients with ``converter``.
    """
    return Replayer(
        workflows=[JobWorkflow, BatchWorkflow],
        namespace="default" if home is None else NAMESPACE,
        data_converter=converter if home is None else signed_converter(key_of(home)),
        interceptors=[Door()],
        workflow_runner=UnsandboxedWorkflowRunner(),
        # The default is made by compiling every module that is imported, which takes seconds.
        build_id="replay",
        # Without the limit of 2 s for an activation, which tells how busy the machine is.
        debug_mode=True,
    )


def told(history: WorkflowHistory) -> str:
    """The events of a history, a line each: number, seconds since the first, kind, and what is
    called or woken.
    """
    began = history.events[0].event_time.ToNanoseconds()
    lines = []
    for event in history.events:
        about = getattr(event, event.WhichOneof("attributes") or "", None)
        names = [getattr(about, name, "") for name in ("activity_id", "timer_id", "marker_name")]
        seconds = (event.event_time.ToNanoseconds() - began) / 1e9
        kind = EventType.Name(event.event_type).removeprefix("EVENT_TYPE_")
        lines.append(f"{event.event_id} {seconds:.3f} {kind} {' '.join(filter(None, names))}")
    return "\n".join(lines)


def events_of(history: WorkflowHistory, kind: str) -> list[Any]:
    """The history's events of a kind, for example ``ACTIVITY_TASK_SCHEDULED``."""
    value = EventType.Value(f"EVENT_TYPE_{kind}")
    return [event for event in history.events if event.event_type == value]


def overdue(history: WorkflowHistory) -> list[Any]:
    """The ends of workflow tasks that took too long, not of those that only waited for long for the
    worker that has the job in memory, as on a busy machine.
    """
    return [
        event
        for event in events_of(history, "WORKFLOW_TASK_TIMED_OUT")
        if event.workflow_task_timed_out_event_attributes.timeout_type
        == TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE
    ]


def activities_of(history: WorkflowHistory) -> list[str]:
    """The ids of the activities that a history scheduled, in order."""
    scheduled = events_of(history, "ACTIVITY_TASK_SCHEDULED")
    return [event.activity_task_scheduled_event_attributes.activity_id for event in scheduled]
