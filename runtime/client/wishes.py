"""What a user wishes of jobs that run, and of batches: to pause, to go on, to end, to hear a
message.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any, Literal

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, PendingWorkflowTaskState
from temporalio.client import (
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowHandle,
)
from temporalio.service import RPCError, RPCStatusCode

from activities.contracts import Decision
from runtime.archive.job import JobArchive
from runtime.base.errors import NotFound
from runtime.base.redaction.masked_edits import Place
from runtime.base.values import JobKey
from runtime.base.workflow_ids import END, TASK_LIMIT, batch_workflow_id, job_workflow_id
from runtime.client.control import Control
from runtime.client.lost import is_open
from runtime.client.masking import masked_message
from runtime.client.own_runs import describe
from runtime.client.questions import OpenQuestion, see_counted
from runtime.client.statuses import LEFT_OPEN
from runtime.client.waiting import waits
from runtime.server.histories import backwards
from workflows.messages import Note

_STARTED = PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_STARTED
_BETWEEN_LOOKS_S = 0.1
_LOOKS = int(TASK_LIMIT.total_seconds() / _BETWEEN_LOOKS_S)
"""How often it is looked whether a workflow task goes on that began before a message came: none
lasts longer, also where its worker was killed.
"""

BatchWish = Literal["pause", "resume", "withdraw_all"]
"""What a batch may be asked of all its jobs: the signals of its workflow."""


async def send(control: Control, key: JobKey, text: str) -> None:
    """Give a running job a message.

    Raises:
        NotFound: if the job does not run, or ends before it looks at the message; if it begins, and
            what is masked for it is not archived yet.
        InputError: if the message says nothing, or is longer than the job's prompt has room for.
    """
    archive = JobArchive.of(control.store, key)
    if await asyncio.to_thread(archive.definition) is None:
        raise await _unarchived(control, key)
    masked = await asyncio.to_thread(masked_message, archive, text)
    await _signal(control, key, "message", Note.of(masked))
    # Asked afterwards: what came before that stands in the end, with those that came too late.
    if await _ends(control, key):
        raise NotFound(
            f"job {key} ends: it reads no message any more, and its end may not count this one"
        )


async def decide(
    control: Control,
    question: OpenQuestion,
    *,
    approved: bool,
    by: str,
    reason: str,
    arguments: dict[str, Any] | None,
    kept: tuple[Place, ...] = (),
) -> None:
    """Answer the question that a job waits with; ``arguments`` stand in for those of the call, but
    at the places that are ``kept``.

    Raises:
        NotFound: if it waits no more, or somebody else's answer was first.
        InputError: if the reason is longer than the job's prompt has room for.
    """
    archive = JobArchive.of(control.store, question.key)
    masked = await asyncio.to_thread(masked_message, archive, reason) if reason.strip() else ""
    decision = Decision(
        question=question.waiting.asked["id"],
        approved=approved,
        by=by,
        at=time.time(),
        reason=masked,
        arguments=arguments,
        kept=kept,
    )
    # To that run alone, since no other hears it. Of one that has ended the history tells more.
    with suppress(NotFound):
        await _signal(control, question.key, "decide", decision, question.run)
    await see_counted(control, question, decision)


async def condense(control: Control, key: JobKey) -> None:
    """Ask a running job to forget older turns before its next model call.

    Raises:
        NotFound: if the job does not run.
    """
    await _signal(control, key, "condense", Note.of())


async def pause(control: Control, key: JobKey) -> None:
    """Have no turn of a running job begin until ``resume``.

    Raises:
        NotFound: if the job does not run.
    """
    await _signal(control, key, "pause", Note.of())


async def resume(control: Control, key: JobKey) -> None:
    """Have a paused job go on.

    Raises:
        NotFound: if the job does not run.
    """
    await _signal(control, key, "resume", Note.of())


async def cancel(control: Control, key: JobKey) -> None:
    """Ask a job that runs, or waits for its place in its batch, to stop.

    It ends as ``cancelled``.

    Raises:
        NotFound: if the job does neither, or its end is being archived.
    """
    if await waits(control, key):
        batch = control.client.get_workflow_handle(batch_workflow_id(key.batch))
        await batch.signal("withdraw", Note.of(key.job))
        return
    newest = await control.newest(key)
    # The server accepts the cancellation of a run that has ended, and does nothing.
    if newest is not None and newest.status is not WorkflowExecutionStatus.RUNNING:
        raise await _does_not_run(control, key)
    try:
        if newest is not None and await _has_told_its_end(control, newest):
            raise NotFound(f"job {key} ends already: its end is being archived")
        await _job(control, key).cancel()
    except RPCError as error:
        raise await _not_running(control, key, error) from error


async def hold_batch(control: Control, batch: str, wish: BatchWish) -> None:
    """Have no job of a running batch begin, or have them begin again, or have all of them end as
    cancelled; those that run are asked by themselves.

    Raises:
        NotFound: if the batch does not run.
    """
    try:
        handle = control.client.get_workflow_handle(batch_workflow_id(batch))
        await handle.signal(wish, Note.of())
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        raise NotFound(
            f"batch {batch!r} does not run: it has ended, or was never started"
        ) from error


async def _signal(
    control: Control, key: JobKey, name: str, argument: Note | Decision, run: str | None = None
) -> None:
    try:
        await _job(control, key, run).signal(name, argument)
    except RPCError as error:
        raise await _not_running(control, key, error) from error


def _job(control: Control, key: JobKey, run: str | None = None) -> WorkflowHandle[Any, Any]:
    return control.client.get_workflow_handle(job_workflow_id(key), run_id=run)


async def _ends(control: Control, key: JobKey) -> bool:
    """Whether the job's run has told its end, or has ended. As far as the server tells: what was
    sent is sent.
    """
    for _ in range(_LOOKS):
        with suppress(RPCError):
            told = await describe(control.client, job_workflow_id(key))
            if told is None or told.status is not WorkflowExecutionStatus.RUNNING:
                return True
            # What comes during a task is heard in the next one, and this one may tell the end.
            if told.raw_description.pending_workflow_task.state != _STARTED:
                return await _has_told_its_end(control, told)
        await asyncio.sleep(_BETWEEN_LOOKS_S)
    return False


async def _has_told_its_end(control: Control, told: WorkflowExecutionDescription) -> bool:
    """Whether the last activity that a job's run has asked for archives its end."""
    run = WorkflowExecution(workflow_id=told.id, run_id=told.run_id)
    async for event in backwards(control.client, run):
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            return event.activity_task_scheduled_event_attributes.activity_id == END
    return False


async def _not_running(control: Control, key: JobKey, error: RPCError) -> NotFound | RPCError:
    return (
        error if error.status is not RPCStatusCode.NOT_FOUND else await _does_not_run(control, key)
    )


async def _unarchived(control: Control, key: JobKey) -> NotFound:
    if not await control.newest_run(key):
        return await _does_not_run(control, key)
    return NotFound(
        f"job {key} begins, and what is to be masked for it is not archived yet: give the same"
        " command again"
    )


async def _does_not_run(control: Control, key: JobKey) -> NotFound:
    why = "it has ended, waits for a place, or was never started ('holdfast ls' lists the jobs)"
    archive = JobArchive.of(control.store, key)
    if not await control.newest_run(key) and await asyncio.to_thread(is_open, archive):
        why = LEFT_OPEN
    return NotFound(f"job {key} does not run: {why}")
