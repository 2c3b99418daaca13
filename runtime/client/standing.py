"""How a run of a job stands: as Temporal describes it, and as its worker tells."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.failure.v1 import Failure
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
)
from temporalio.converter import DataConverter
from temporalio.exceptions import FailureError
from temporalio.service import RPCError

from activities.contracts import HELD
from runtime.base.spec.limits import queue_named, role_of
from runtime.base.standings import AWAITED_ROLE
from runtime.base.values import JobKey
from runtime.job.stops import JobStatus
from runtime.server.authentic import NotSigned, in_activity
from runtime.server.pollers import is_polled
from workflows.messages import JobOutcome, JobProgress

STUCK_ATTEMPTS = 3
"""A workflow task that was tried so often fails for a reason that trying again does not mend."""

ANSWER_WITHIN = timedelta(seconds=5)
"""A worker answers queries: where there is none, the server would wait for it much longer."""

_CALL = "call_model"
_RUN_COMMANDS = frozenset({"change_workspace", "open_workspace"})
_ABANDONED = {
    WorkflowExecutionStatus.TERMINATED: "the workflow was terminated",
    WorkflowExecutionStatus.TIMED_OUT: "the workflow timed out",
    WorkflowExecutionStatus.FAILED: "the workflow failed",
}


@dataclass(frozen=True)
class Trouble:
    """Why what a job does now is tried again: the last error, the number of the attempt that comes
    or runs, and when it comes, in seconds from now (0: it runs).

    With ``held``, the attempt has its reply, and waits to archive it.
    """

    error: str
    attempt: int
    seconds: float
    held: bool = False

    def __str__(self) -> str:
        return self.error if self.held else f"attempt {self.attempt}, after {self.error}"


@dataclass(frozen=True)
class Running:
    """A command of a job's statement that runs now, and the last line that it printed."""

    command: str
    line: str = ""


@dataclass(frozen=True)
class Standing:
    """How a job's newest run stands: its outcome if it has ended, else its progress if a worker
    tells, and since when it runs.
    """

    run: str
    outcome: JobOutcome | None = None
    progress: JobProgress | None = None
    trouble: Trouble | None = None
    running: Running | None = None
    since: datetime | None = None
    awaits: str = ""
    """The queue whose workers alone may make the call that the job waits for; ``role:NAME`` where
    no worker of that role is there.
    """


async def run_standing(
    client: Client, key: JobKey, description: WorkflowExecutionDescription
) -> Standing:
    """How a run of the job stands, of which Temporal says what ``description`` has."""
    run = description.run_id or ""
    if description.status is not WorkflowExecutionStatus.RUNNING:
        return Standing(run, outcome=await run_outcome(client, key, description))
    return Standing(
        run,
        progress=await _progress(client, description),
        trouble=await _trouble(client, description),
        running=await _running(client, description),
        since=description.start_time,
        awaits=await _awaited(client, description),
    )


async def run_outcome(
    client: Client, key: JobKey, description: WorkflowExecutionDescription
) -> JobOutcome:
    """How a run of the job ended that does not run any more."""
    run = description.run_id or ""
    ended = _handle(client, description)
    if description.status is WorkflowExecutionStatus.CANCELED:
        return JobOutcome(key=key, run=run, status=JobStatus.CANCELLED, reason="cancelled")
    if description.status in _ABANDONED:
        reason = _ABANDONED[description.status]
        # For its reason: what did not complete has no result.
        try:
            await ended.result()
        except WorkflowFailureError as error:
            reason = f"{reason}: {error.cause}"
        except NotSigned as error:
            reason = f"{reason}: {error.message}"
        return JobOutcome(key=key, run=run, status=JobStatus.FAILED, reason=reason)
    try:
        outcome: JobOutcome = await ended.result()
    except NotSigned as error:
        if error.refusal.may_be_ours:
            raise
        return JobOutcome(
            key=key,
            run=run,
            status=JobStatus.FAILED,
            reason=f"ended from outside: {error.message}",
        )
    return outcome


def _handle(
    client: Client, description: WorkflowExecutionDescription
) -> WorkflowHandle[Any, JobOutcome]:
    return client.get_workflow_handle(
        description.id, run_id=description.run_id, result_type=JobOutcome
    )


async def _progress(
    client: Client, description: WorkflowExecutionDescription
) -> JobProgress | None:
    """Where a running job stands, asked of its worker; None if none answers now."""
    try:
        progress: JobProgress = await _handle(client, description).query(
            "progress", result_type=JobProgress, rpc_timeout=ANSWER_WITHIN
        )
        return progress
    except (RPCError, WorkflowQueryFailedError, NotSigned):
        return None


async def _trouble(client: Client, description: WorkflowExecutionDescription) -> Trouble | None:
    """Why the job is tried again, if it is: a reply that cannot be archived, an activity's last
    failure, or a workflow task that fails each time.
    """
    for pending in description.raw_description.pending_activities:
        if pending.activity_type.name == _CALL and _has_told(pending):
            beat = await _beat(client, description, pending)
            if why := str(beat.get(HELD, "")):
                held = f"the reply waits to be archived: {why}"
                return Trouble(held, pending.attempt, 0.0, held=True)
        if pending.HasField("last_failure"):
            due = pending.next_attempt_schedule_time
            comes = (
                due.ToDatetime(tzinfo=UTC)
                if pending.HasField("next_attempt_schedule_time")
                else None
            )
            wait = (comes - datetime.now(UTC)).total_seconds() if comes is not None else 0.0
            converter = in_activity(client, description.id, pending.activity_id)
            error = await _told(pending.last_failure, converter)
            return Trouble(error, pending.attempt, max(wait, 0.0))
    task = description.raw_description.pending_workflow_task
    if task.attempt >= STUCK_ATTEMPTS:
        return Trouble(
            "the workflow's task fails; the worker's output and Temporal's web UI say why",
            task.attempt,
            0.0,
        )
    return None


def _has_told(pending: PendingActivityInfo) -> bool:
    """Whether the attempt that runs has sent a heartbeat: that of one before it stays there."""
    runs = pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
    told, began = pending.last_heartbeat_time, pending.last_started_time
    return runs and told.ToNanoseconds() > began.ToNanoseconds()


async def _told(failure: Failure, converter: DataConverter) -> str:
    """A failure's kind and message, which may be encrypted."""
    kind, message = failure.application_failure_info.type, failure.message
    if failure.HasField("encoded_attributes"):
        with suppress(NotSigned):
            decoded = await converter.decode_failure(failure)
            message = decoded.message if isinstance(decoded, FailureError) else str(decoded)
    return f"{kind}: {message}" if kind else message


async def _running(client: Client, description: WorkflowExecutionDescription) -> Running | None:
    """The command that runs, as its heartbeats tell: none of the first second."""
    for pending in description.raw_description.pending_activities:
        if pending.activity_type.name in _RUN_COMMANDS and (
            told := await _beat(client, description, pending)
        ):
            command = str(told.get("command", ""))
            return Running(command, str(told.get("line", ""))) if command else None
    return None


async def _beat(
    client: Client, description: WorkflowExecutionDescription, pending: PendingActivityInfo
) -> dict[str, Any]:
    """What the last heartbeat of an activity tells; nothing if there is none, or none of ours."""
    if not pending.heartbeat_details.payloads:
        return {}
    converter = in_activity(client, description.id, pending.activity_id)
    try:
        (told,) = await converter.decode(pending.heartbeat_details.payloads[:1], [dict[str, Any]])
    except NotSigned:
        return {}
    return dict(told)


async def _awaited(client: Client, description: WorkflowExecutionDescription) -> str:
    """What a call waits for that no worker has taken yet; empty if there is none."""
    for pending in description.raw_description.pending_activities:
        if pending.state != PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED:
            continue
        task_queue = pending.activity_options.task_queue.name
        if (queue := queue_named(task_queue)) is not None:
            return queue
        role = role_of(task_queue)
        if role is not None and not await is_polled(client, task_queue):
            return f"{AWAITED_ROLE}{role}"
    return ""
