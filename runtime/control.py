"""What a client does with batches and jobs: plan, submit, watch, message, cancel. Needs no worker of its own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError, RPCStatusCode

from activities.contracts import JobKey
from runtime.archive import keys
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore
from runtime.errors import DefinitionChanged, NotFound
from runtime.job.stops import JobStatus
from runtime.spec.changes import changes, definition_digest
from runtime.spec.models import BatchSpec, JobSpec
from workflows.batch import BatchWorkflow
from workflows.job import JobWorkflow
from workflows.messages import (
    TASK_QUEUE,
    BatchOrder,
    BatchState,
    JobOrder,
    JobOutcome,
    JobProgress,
    Submission,
    batch_workflow_id,
    job_workflow_id,
)

SUBMIT_BYTES = 500_000
"""Jobs go to a batch in portions of about this size: a payload may have 2 MiB."""

POLL_SECONDS = 0.4
_SHORT = timedelta(seconds=5)
_ABANDONED = {
    WorkflowExecutionStatus.TERMINATED: "the workflow was terminated",
    WorkflowExecutionStatus.TIMED_OUT: "the workflow timed out",
    WorkflowExecutionStatus.FAILED: "the workflow failed",
}


class Start(StrEnum):
    """What giving the command does with a job."""

    NEW = "new"
    RESUMED = "resumed"
    DONE = "done"
    RERUN = "rerun"


@dataclass(frozen=True)
class JobPlan:
    """One job of the command: what is done with it, the turns it has had, and its outcome if it has ended."""

    spec: JobSpec
    start: Start
    turn: int = 0
    outcome: JobOutcome | None = None


@dataclass(frozen=True)
class Plan:
    """What the command will do."""

    batch: str
    concurrency: int
    jobs: tuple[JobPlan, ...]

    def counted(self, start: Start) -> tuple[JobPlan, ...]:
        """The jobs with which ``start`` is done."""
        return tuple(job for job in self.jobs if job.start is start)

    def sentence(self) -> str:
        """``1 done, 2 resumed at turns 4 and 11, 3 new``."""
        parts: list[str] = []
        if done := self.counted(Start.DONE):
            parts.append(f"{len(done)} done")
        if resumed := self.counted(Start.RESUMED):
            turns = [str(job.turn) for job in resumed]
            listed = turns[0] if len(turns) == 1 else f"{', '.join(turns[:-1])} and {turns[-1]}"
            parts.append(f"{len(resumed)} resumed at turn{'s' if len(turns) > 1 else ''} {listed}")
        if rerun := self.counted(Start.RERUN):
            parts.append(f"{len(rerun)} started anew")
        if new := self.counted(Start.NEW):
            parts.append(f"{len(new)} new")
        return ", ".join(parts) or "no jobs"


@dataclass(frozen=True)
class Turn:
    """A job has come to another turn, or to another phase of it."""

    key: JobKey
    progress: JobProgress


@dataclass(frozen=True)
class Ended:
    """A job has ended."""

    outcome: JobOutcome


@dataclass
class Control:
    """A client's side of Holdfast, on one Temporal namespace and one archive."""

    client: Client
    store: ObjectStore
    _seen: dict[str, tuple[int, str]] = field(default_factory=dict)

    async def plan(self, batch: BatchSpec, *, rerun_failed: bool) -> Plan:
        """What to do with each job of ``batch``. Starts nothing.

        Raises:
            DefinitionChanged: if a job that was started is defined otherwise now.
        """
        limit = asyncio.Semaphore(16)

        async def one(spec: JobSpec) -> JobPlan:
            async with limit:
                return await self._plan_job(batch.batch, spec, rerun_failed=rerun_failed)

        return Plan(batch.batch, batch.concurrency, tuple(await asyncio.gather(*map(one, batch.jobs))))

    async def submit(self, plan: Plan) -> None:
        """Start what the plan starts. Giving the same plan twice starts nothing twice."""
        fresh = [job.spec for job in plan.jobs if job.start in (Start.NEW, Start.RERUN)]
        rerun = tuple(job.spec.id for job in plan.counted(Start.RERUN))
        for portion in _portions([_order(plan.batch, spec) for spec in fresh]):
            start = WithStartWorkflowOperation(
                BatchWorkflow.run,
                BatchOrder(batch=plan.batch),
                id=batch_workflow_id(plan.batch),
                task_queue=TASK_QUEUE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            )
            await self.client.execute_update_with_start_workflow(
                BatchWorkflow.submit,
                Submission(jobs=portion, concurrency=plan.concurrency, rerun=rerun),
                start_workflow_operation=start,
            )

    async def watch(self, plan: Plan) -> AsyncIterator[Turn | Ended]:
        """Follow the plan's jobs until all have ended."""
        pending = {job.spec.id for job in plan.jobs if job.start is not Start.DONE}
        while pending:
            state = await self._batch_state(plan.batch)
            candidates = sorted(pending - set(state.waiting))
            for name in candidates:
                key = JobKey(batch=plan.batch, job=name)
                outcome = await self.outcome(key)
                if outcome is not None:
                    pending.discard(name)
                    yield Ended(outcome)
                elif (progress := await self.progress(key)) is not None and self._moved(name, progress):
                    yield Turn(key, progress)
            if pending:
                await asyncio.sleep(POLL_SECONDS)

    async def outcome(self, key: JobKey) -> JobOutcome | None:
        """How the job's newest run ended; None while it runs or before it has started."""
        handle = self._job(key)
        description = await _describe(handle)
        if description is None or description.status in (None, WorkflowExecutionStatus.RUNNING):
            return None
        return await self._ended(key, handle, description)

    async def progress(self, key: JobKey) -> JobProgress | None:
        """Where a running job stands, asked of its worker; None if none answers now."""
        try:
            return await self._job(key).query(JobWorkflow.progress, rpc_timeout=_SHORT)
        except RPCError:
            return None

    async def send(self, key: JobKey, text: str) -> None:
        """Give a running job a message.

        Raises:
            NotFound: if the job does not run.
        """
        await self._signal(key, "message", text)

    async def cancel(self, key: JobKey) -> None:
        """Ask a running job to stop. It ends as ``cancelled``.

        Raises:
            NotFound: if the job does not run.
        """
        try:
            await self._job(key).cancel()
        except RPCError as error:
            raise _not_running(key, error) from error

    def result(self, outcome: JobOutcome) -> Any:
        """The result that the job's ``finish`` was given, from the archive."""
        end = JobArchive(self.store, outcome.key.batch, outcome.key.job).end(outcome.run)
        return None if end is None else end.result

    async def _plan_job(self, batch: str, spec: JobSpec, *, rerun_failed: bool) -> JobPlan:
        key = JobKey(batch=batch, job=spec.id)
        handle = self._job(key)
        description = await _describe(handle)
        if description is None:
            waiting = spec.id in (await self._batch_state(batch)).waiting
            return JobPlan(spec, Start.RESUMED if waiting else Start.NEW)
        running = description.status is WorkflowExecutionStatus.RUNNING
        outcome = None if running else await self._ended(key, handle, description)
        if outcome is not None and outcome.status is not JobStatus.SUCCEEDED and rerun_failed:
            return JobPlan(spec, Start.RERUN)
        await self._check_definition(handle, description, spec)
        if running:
            return JobPlan(spec, Start.RESUMED, turn=await asyncio.to_thread(self._turn, key, description.run_id))
        return JobPlan(spec, Start.DONE, outcome=outcome, turn=outcome.turns if outcome else 0)

    async def _check_definition(
        self, handle: WorkflowHandle[Any, Any], description: WorkflowExecutionDescription, spec: JobSpec
    ) -> None:
        if await description.memo_value("definition", default="") == definition_digest(spec):
            return
        async for event in handle.fetch_history_events(page_size=1):
            started = event.workflow_execution_started_event_attributes.input.payloads
            (order,) = await self.client.data_converter.decode(started, [JobOrder])
            differences = changes(order.spec, spec)
            raise DefinitionChanged(
                f"job {spec.id!r} was started with another definition: {'; '.join(differences)}. "
                "Give it another id, name another batch, or put the definition back"
            )

    async def _ended(
        self, key: JobKey, handle: WorkflowHandle[Any, Any], description: WorkflowExecutionDescription
    ) -> JobOutcome:
        if description.status is WorkflowExecutionStatus.CANCELED:
            return JobOutcome(key=key, status=JobStatus.CANCELLED, reason="cancelled")
        if description.status in _ABANDONED:
            reason = _ABANDONED[description.status]
            try:
                await handle.result()
            except WorkflowFailureError as error:
                reason = f"{reason}: {error.cause}"
            return JobOutcome(key=key, status=JobStatus.FAILED, reason=reason)
        return JobOutcome.model_validate(await handle.result())

    async def _batch_state(self, batch: str) -> BatchState:
        """What the batch says of its jobs; nothing if it does not run."""
        handle = self.client.get_workflow_handle(batch_workflow_id(batch))
        description = await _describe(handle)
        if description is None or description.status is not WorkflowExecutionStatus.RUNNING:
            return BatchState()
        try:
            state: BatchState = await handle.query("state", result_type=BatchState, rpc_timeout=_SHORT)
            return state
        except RPCError:
            return BatchState()

    async def _signal(self, key: JobKey, name: str, value: Any) -> None:
        try:
            await self._job(key).signal(name, value)
        except RPCError as error:
            raise _not_running(key, error) from error

    def _job(self, key: JobKey) -> WorkflowHandle[JobWorkflow, JobOutcome]:
        return self.client.get_workflow_handle_for(JobWorkflow.run, job_workflow_id(key))

    def _turn(self, key: JobKey, run: str | None) -> int:
        """The last turn of a run that the archive has, finished or in flight."""
        names = deque(JobArchive(self.store, key.batch, key.job).lineage.keys(run), maxlen=1) if run else ()
        found = keys.parse_turn_key(names[0]) if names else None
        return found.turn if found is not None else 0

    def _moved(self, name: str, progress: JobProgress) -> bool:
        now = (progress.turn, progress.phase)
        moved = self._seen.get(name) != now
        self._seen[name] = now
        return moved


def _order(batch: str, spec: JobSpec) -> JobOrder:
    return JobOrder(key=JobKey(batch=batch, job=spec.id), spec=spec, definition=definition_digest(spec))


def _portions(orders: Iterable[JobOrder]) -> list[tuple[JobOrder, ...]]:
    portions: list[list[JobOrder]] = []
    room = 0
    for order in orders:
        size = len(order.model_dump_json())
        if not portions or size > room:
            portions.append([])
            room = SUBMIT_BYTES
        portions[-1].append(order)
        room -= size
    return [tuple(portion) for portion in portions]


async def _describe(handle: WorkflowHandle[Any, Any]) -> WorkflowExecutionDescription | None:
    try:
        return await handle.describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise


def _not_running(key: JobKey, error: RPCError) -> NotFound | RPCError:
    if error.status is RPCStatusCode.NOT_FOUND:
        return NotFound(f"job {key} does not run: it has ended, or was never started ('holdfast ls' lists the jobs)")
    return error
