"""The question that a job waits with for a person, as its newest run asked it, and its answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowExecutionStatus

from activities.contracts import Decision
from runtime.archive.approvals import Waiting, waiting_question
from runtime.archive.job import JobArchive
from runtime.base.errors import NotFound
from runtime.base.values import JobKey
from runtime.base.workflow_ids import approval_activity_id, effect_activity_id, job_workflow_id
from runtime.client.control import Control
from runtime.client.moves import POLL_SECONDS
from runtime.client.own_runs import describe
from runtime.client.statuses import LEFT_OPEN
from runtime.server.authentic import NotSigned, in_workflow
from runtime.server.histories import backwards


@dataclass(frozen=True)
class OpenQuestion:
    """A question of a job that waits, and the run that hears its answer: the newest one, which may
    be a reset of the one that asked.
    """

    key: JobKey
    waiting: Waiting
    run: str

    @property
    def call(self) -> str:
        """How it is told: ``call 7.0 of job nightly/parts``."""
        return f"call {self.waiting.turn}.{self.waiting.effect} of job {self.key}"


async def open_question(control: Control, key: JobKey) -> OpenQuestion:
    """The question that a job waits with.

    A run that goes on from the archive, or was taken back to before it asked, asks anew: until
    then the archive has the question of the run before it, and nobody would hear its answer.

    Raises:
        NotFound: if there is none.
        ObjectCorrupt: if it cannot be read.
    """
    archive = JobArchive.of(control.store, key)
    waiting = await asyncio.to_thread(waiting_question, archive)
    newest = await control.newest_run(key)
    if waiting is not None and not newest:
        raise NotFound(f"job {key} waits for no approval: {LEFT_OPEN}")
    # That of the run before it may stand under its own name before it has come to the call.
    if waiting is not None and newest != waiting.asker:
        asked = await _has_asked(control, key, newest, waiting)
        # What that run asked itself stands in the archive before it stands in the history.
        waiting = await asyncio.to_thread(waiting_question, archive)
        if waiting is not None and waiting.asker != newest and not asked:
            raise NotFound(
                f"job {key} waits for no approval yet: its run {waiting.asker} did, and the one"
                " that took its place has not asked again yet"
            )
    if waiting is None:
        raise NotFound(f"job {key} waits for no approval ('holdfast approvals' lists those)")
    question = OpenQuestion(key, waiting, newest)
    # The archive has an answer once a worker has taken it, the history as it comes.
    if (first := await _first_answer(control, question)) is not None:
        raise NotFound(_decided(question, first))
    return question


async def see_counted(control: Control, question: OpenQuestion, decision: Decision) -> None:
    """See that a decision that was sent is the one that counts, where others answer too: the first
    in the history.

    Raises:
        NotFound: if another was first, or the run ended.
    """
    while True:
        described = await describe(control.client, job_workflow_id(question.key), question.run)
        first = None if described is None else await _first_answer(control, question)
        if first is not None:
            break
        if described is None or described.status is not WorkflowExecutionStatus.RUNNING:
            raise NotFound(f"{question.call} waits no more: run {question.run} has ended")
        # While a workflow task is under way, what comes stands in no history yet.
        await asyncio.sleep(POLL_SECONDS)
    if (first.by, first.at) != (decision.by, decision.at):
        raise NotFound(_decided(question, first))


def _decided(question: OpenQuestion, first: Decision) -> str:
    if not first.by:
        return f"{question.call} waits no more: nobody answered in time"
    how = "approved" if first.approved else "rejected"
    return f"{question.call} was {how} by {first.by} before"


async def _first_answer(control: Control, question: OpenQuestion) -> Decision | None:
    """The answer that counts, as the history has it; one by nobody, if the call was decided without
    any; None while there is none.

    Raises:
        NotFound: if the job was asked to end before it was answered.
    """
    waiting, workflow = question.waiting, job_workflow_id(question.key)
    execution = WorkflowExecution(workflow_id=workflow, run_id=question.run)
    since = list[HistoryEvent]()
    async for event in backwards(control.client, execution):
        if _scheduled(event) == approval_activity_id(waiting.turn, waiting.effect):
            break
        since.append(event)
    converter = in_workflow(control.client, workflow)
    for event in reversed(since):
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
            raise NotFound(f"{question.call} waits no more: the job was asked to end")
        if _scheduled(event) == effect_activity_id(waiting.turn, waiting.effect):
            return Decision(question=waiting.asked["id"], approved=False)
        signaled = event.workflow_execution_signaled_event_attributes
        if signaled.signal_name == "decide":
            try:
                (decision,) = await converter.decode(signaled.input.payloads, [Decision])
            # A stranger's: the job does not take it either.
            except (NotSigned, ValueError):
                continue
            if isinstance(decision, Decision) and decision.question == waiting.asked["id"]:
                return decision
    return None


def _scheduled(event: HistoryEvent) -> str:
    """The id of the activity that an event schedules; empty if it schedules none."""
    return event.activity_task_scheduled_event_attributes.activity_id


async def _has_asked(control: Control, key: JobKey, run: str, waiting: Waiting) -> bool:
    """Whether the history of a run has the question: its own, or that of the run that it is a reset
    of.
    """
    handle = control.client.get_workflow_handle(job_workflow_id(key), run_id=run)
    scheduled = set[int]()
    async for event in handle.fetch_history_events():
        if _scheduled(event) == approval_activity_id(waiting.turn, waiting.effect):
            scheduled.add(event.event_id)
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
            completed = event.activity_task_completed_event_attributes
            if completed.scheduled_event_id in scheduled:
                return True
    return False
