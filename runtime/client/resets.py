"""Taking a job back to a statement: a Temporal reset, with the order of the replay in the archive
before it (docs/design.md section 9).

Decided on purpose: messages that came after the reset point are delivered again, once each; a wish
to cancel that came before the reset was for the run that the reset ends, and is not; an activity of
that run that is still at work is cancelled at its next heartbeat, and what it archives stands under
that run. A job that did not succeed can be taken back to where it stopped, too: to a call that
failed or was broken off, or to the turn that a budget did not allow.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, ResetReapplyExcludeType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
)
from temporalio.exceptions import TerminatedError
from temporalio.service import RPCError, RPCStatusCode

from activities.record import ReplayOrder
from activities.replays import Ordered
from runtime.archive import keys
from runtime.archive.gaps import check_turns
from runtime.archive.job import JobArchive
from runtime.archive.replays import write_replay
from runtime.archive.stores import ObjectStore
from runtime.base.errors import InputError, NotFound, ServerError
from runtime.base.failpoints import failpoint
from runtime.base.values import JobKey
from runtime.base.workflow_ids import END, job_workflow_id
from runtime.client.lost import check_not_half_deleted
from runtime.client.moves import POLL_SECONDS
from runtime.client.own_runs import describe
from runtime.job.stops import JobStatus
from runtime.server.authentic import KEYS, encryption_keys, missing_keys
from runtime.server.away import is_passing
from workflows.messages import JobOutcome

ORDER_BYTES = 500_000
"""The largest order: it goes through a workflow's history, where a payload may have 2 MiB."""


@dataclass(frozen=True)
class Reset:
    """A run that a reset or a fork made: its id, and the task queue on which it waits for a worker.

    ``existed``: an earlier command has made it.
    """

    key: JobKey
    run: str
    queue: str
    existed: bool = False


async def reset(client: Client, store: ObjectStore, key: JobKey, order: ReplayOrder) -> Reset:
    """Take the job of ``order.source`` back to before the model call of turn ``order.start``, and
    on from there as ordered.

    Raises:
        NotFound: if the run has no such turn, or Temporal has deleted the run; nothing is changed.
        InputError: if the turn belongs to another job, a later try of the job runs, the order is
            too large, the history is encrypted with a key that is not here, or the job is half
            deleted; nothing is changed.
        ServerError: if the server refuses the reset.
    """
    archive = JobArchive.of(store, key)
    await asyncio.to_thread(check_not_half_deleted, archive)
    point = await _point(client, archive, key, order)
    # Before the order is archived: of a reset that cannot be made nothing is to be left.
    described = await _described(client, key, point.run, point.turn)
    await _check_other_tries(client, key, described)
    events = await _history_until(client, key, point)
    point = replace(point, event=before_verdicts(events, point.event))
    _check_keys(key, point, events)
    text = order.model_dump(mode="json", exclude_defaults=True)
    if len(order.model_dump_json()) > ORDER_BYTES:
        raise InputError(
            f"the edited statement or the message is too long: {ORDER_BYTES:,} bytes at most"
        )
    # First of all: the run that the reset makes looks for its order in the archive.
    await asyncio.to_thread(write_replay, archive, order.id, text, datetime.now(UTC).isoformat())
    failpoint("reset.before")
    request = ResetWorkflowExecutionRequest(
        namespace=client.namespace,
        workflow_execution=WorkflowExecution(workflow_id=job_workflow_id(key), run_id=point.run),
        reason=Ordered(order.id, order.start).reason,
        workflow_task_finish_event_id=point.event,
        # It is sent again where no answer came: the same id is the same reset.
        request_id=order.id,
        reset_reapply_exclude_types=[
            ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_CANCEL_REQUEST
        ],
    )
    try:
        answer = await client.workflow_service.reset_workflow_execution(request, retry=True)
    except RPCError as error:
        raise ServerError(
            f"Temporal did not reset {key} to statement {order.start}: {error.message}"
        ) from error
    failpoint("reset.after")
    return Reset(key, answer.run_id, described.task_queue)


async def _check_other_tries(
    client: Client, key: JobKey, described: WorkflowExecutionDescription
) -> None:
    """See that no later try of the job runs: the reset would end it, and its batch, which is told
    of that one, would wait for ever.

    Raises:
        InputError: if one does.
    """
    newest = await describe(client, job_workflow_id(key))
    if (
        newest is not None
        and newest.status is WorkflowExecutionStatus.RUNNING
        and newest.raw_info.first_run_id != described.raw_info.first_run_id
    ):
        raise InputError(
            f"{key} was started anew after run {described.run_id}, and runs: going back in that one"
            f" would end run {newest.run_id}. Wait for it or cancel it ('holdfast cancel {key}')"
            " first, or fork the job ('holdfast fork')"
        )


async def outcome_of_reset(
    client: Client, made: Reset, silent: Callable[[str], None] = lambda reason: None
) -> JobOutcome:
    """How the run ended, or the last of those in which it went on.

    Waits for it; a worker must be there. A server that does not answer is waited for too, and
    ``silent`` is told its reason each time.

    Raises:
        ServerError: if another reset, or a termination, ended it: its steps stay in the archive.
    """
    handle = client.get_workflow_handle(
        job_workflow_id(made.key), run_id=made.run, result_type=JobOutcome
    )
    try:
        while True:
            try:
                outcome: JobOutcome = await handle.result()
                return outcome
            except RPCError as error:
                if not is_passing(error):
                    raise
                silent(error.message)
                await asyncio.sleep(POLL_SECONDS)
    except WorkflowFailureError as error:
        if isinstance(error.cause, TerminatedError):
            raise ServerError(
                f"run {made.run} of {made.key} was ended from outside ({error.cause}): another"
                " replay took the job over, or it was terminated. What it did stays in the archive"
            ) from error
        raise ServerError(f"run {made.run} of {made.key} failed: {error.cause}") from error


@dataclass(frozen=True)
class _Point:
    """Where a reset goes back to: a run, the turn, and the event that ends the workflow task to be
    done again.
    """

    run: str
    turn: int
    event: int


async def _point(client: Client, archive: JobArchive, key: JobKey, order: ReplayOrder) -> _Point:
    assert order.source is not None, "an order of a reset names the timeline that it goes back in"
    run, turn = order.source.run, order.start
    step = await asyncio.to_thread(archive.find_step, run, turn)
    if step is None:
        last = await asyncio.to_thread(_last_turn, archive, run)
        # Its reply may have come meanwhile.
        step = await asyncio.to_thread(archive.find_step, run, turn) if turn <= last else None
        if step is None:
            return await _stop_of(client, archive, key, order, last)
    turn_key = keys.parse_turn_key(step.ref.key)
    if turn_key is None or turn_key.job != archive.prefix:
        other = str(keys.job_of(turn_key.job)) if turn_key else step.ref.key
        raise InputError(
            f"statement {turn} of {key} is one of {other}, from which {key} was forked: replay"
            f" {other}, or fork {key}"
        )
    return _Point(step.run, turn, step.reset_event_id)


def _last_turn(archive: JobArchive, run: str) -> int:
    return max((step.turn for step in archive.steps(run)), default=0)


def _numbered(last: int) -> str:
    return f"they are numbered 1 to {last}" if last else "no call of it has a reply"


async def _stop_of(
    client: Client, archive: JobArchive, key: JobKey, order: ReplayOrder, last: int
) -> _Point:
    """Before the turn at which a run stopped or is at work, after ``last``: no step says where that
    is, but its history does.
    """
    assert order.source is not None
    run, turn = order.source.run, order.start
    end = await asyncio.to_thread(archive.end, run)
    if turn != last + 1 or (end is not None and end.status == JobStatus.SUCCEEDED):
        await asyncio.to_thread(check_turns, archive, run, turn)
        raise NotFound(f"run {run} of {key} has no statement {turn}: {_numbered(last)}")
    if order.follows:
        raise InputError(
            f"run {run} of {key} has no reply at {turn}, so there is nothing to execute again"
        )
    described = await _described(client, key, run, turn)
    handle = client.get_workflow_handle(described.id, run_id=run)
    scheduled = {
        attributes.activity_id: attributes.workflow_task_completed_event_id
        async for event in handle.fetch_history_events()
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
        for attributes in [event.activity_task_scheduled_event_attributes]
    }
    calls = re.compile(rf"turn-{turn}(-\d+)?")
    # A call may have been made several times: the last is where the run stopped.
    if called := [event for name, event in scheduled.items() if calls.fullmatch(name)]:
        return _Point(run, turn, max(called))
    if end is not None and END in scheduled:
        return _Point(run, turn, scheduled[END])
    raise NotFound(f"run {run} of {key} has not come to statement {turn}: {_numbered(last)}")


async def _history_until(client: Client, key: JobKey, point: _Point) -> list[HistoryEvent]:
    """The events of the run up to the point."""
    handle = client.get_workflow_handle(job_workflow_id(key), run_id=point.run)
    events: list[HistoryEvent] = []
    async for event in handle.fetch_history_events():
        if event.event_id > point.event:
            break
        events.append(event)
    return events


def before_verdicts(events: Sequence[HistoryEvent], completed: int) -> int:
    """The workflow task to be done again so that what the one completed at event ``completed`` did
    is done as ordered: that one, or one before it.

    A query makes the server cut a task in two: the first ends with a statement's verdict, and what
    follows from that is done in the second, though nothing has happened in between. Where the first
    is replayed, the workflow goes on from the verdict at once, and is told of a reset to the second
    too late; so both are done again.
    """
    of_tasks = {
        EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
        EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED,
    }
    while True:
        earlier = [
            event.event_id
            for event in events
            if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
            and event.event_id < completed
        ]
        if not earlier:
            return completed
        between = [event for event in events if earlier[-1] < event.event_id < completed]
        commands = [event for event in between if _made_by(event) == earlier[-1]]
        happened = any(
            event.event_type not in of_tasks and event not in commands for event in between
        )
        verdicts = [event.event_type == EventType.EVENT_TYPE_MARKER_RECORDED for event in commands]
        if not any(verdicts) or (happened and not verdicts[-1]):
            return completed
        completed = earlier[-1]


def _made_by(event: HistoryEvent) -> int | None:
    """The completed workflow task of which an event is a command; None if it is none of any."""
    attributes = getattr(event, event.WhichOneof("attributes") or "", None)
    return getattr(attributes, "workflow_task_completed_event_id", None)


def _check_keys(key: JobKey, point: _Point, events: Iterable[HistoryEvent]) -> None:
    """See that what would be executed again can be read: without its keys a worker could not, and
    the new run would wait for one that can.
    """
    keys, missing = encryption_keys(), set[str]()
    for event in events:
        # What stands behind the point is not executed again.
        if event.event_id <= point.event:
            missing |= missing_keys(event, keys)
    if missing:
        raise InputError(
            f"the history of run {point.run} of {key} is encrypted with a key that is not here"
            f" ({', '.join(sorted(missing))}): add it to {KEYS}. 'holdfast fork' needs the archive"
            " alone"
        )


async def _described(
    client: Client, key: JobKey, run: str, turn: int
) -> WorkflowExecutionDescription:
    handle = client.get_workflow_handle(job_workflow_id(key), run_id=run)
    try:
        return await handle.describe()
    except RPCError as error:
        # A run id that Temporal did not give is an invalid argument.
        if error.status not in {RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT}:
            raise
        raise NotFound(
            f"Temporal no longer has run {run} of {key}, so it cannot be reset. The archive has it:"
            f" 'holdfast fork {key}@{turn} --as ID' goes on from there as another job"
        ) from error
