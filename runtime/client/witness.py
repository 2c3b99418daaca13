"""Temporal's history as a witness of a job's archive: the digests and replies that it holds of each
turn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowExecution, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from activities.contracts import TurnReply
from runtime.archive import keys
from runtime.archive.findings import Fault, Finding, Severity
from runtime.archive.forms import WITHOUT_MODEL
from runtime.archive.job import JobArchive
from runtime.base.errors import ArchiveError
from runtime.base.plurals import counted
from runtime.base.values import JobKey, ModelReply, StepRef
from runtime.base.workflow_ids import batch_workflow_id, job_key, job_workflow_id
from runtime.server.authentic import NotSigned, in_activity

_SCHEDULED = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
_COMPLETED = EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED


@dataclass
class Witness:
    """What the histories of a job's runs hold.

    ``runs`` are those whose history is still there, ``begun`` those that archived the job's
    definition.
    """

    begun: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    replies: list[TurnReply] = field(default_factory=list)
    ends: list[StepRef] = field(default_factory=list)

    @property
    def refs(self) -> list[StepRef]:
        """The digests of all steps and ends."""
        return [*(reply.step for reply in self.replies), *self.ends]


async def witness_of(client: Client, key: JobKey, runs: Iterable[str]) -> Witness:
    """Reads the histories of a job's runs; those that Temporal no longer has are left out.

    Raises:
        RPCError: if the server fails.
    """
    witness = Witness()
    for run in runs:
        handle = client.get_workflow_handle(job_workflow_id(key), run_id=run)
        scheduled: dict[int, tuple[str, str]] = {}
        try:
            async for event in handle.fetch_history_events():
                await _take(client, handle, event, scheduled, witness)
        except RPCError as error:
            # A run id that Temporal did not give is an invalid argument.
            if error.status not in {RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT}:
                raise
            continue
        witness.runs.append(run)
    return witness


async def runs_of(client: Client, key: JobKey) -> list[str]:
    """The runs of a job that Temporal's list has.

    Raises:
        RPCError: if the server fails.
    """
    query = f"WorkflowType = 'JobWorkflow' AND WorkflowId = {_quoted(job_workflow_id(key))}"
    return [execution.run_id async for execution in client.list_workflows(query)]


async def jobs_of(client: Client, archive: str | None) -> list[JobKey]:
    """The jobs that Temporal's list has and that were archived under the id ``archive``; none for
    None.

    A job that a batch started does not say where its archive is; its batch does.

    Raises:
        RPCError: if the server fails.
    """
    if archive is None:
        return []
    batches: set[str] = set()
    async for execution in client.list_workflows("WorkflowType = 'BatchWorkflow'"):
        if (await _memo(execution)).get("archive") == archive:
            batches.add(execution.id)
    jobs: dict[JobKey, None] = {}
    async for execution in client.list_workflows("WorkflowType = 'JobWorkflow'"):
        key = job_key(execution.id)
        if key is None:
            continue
        memo = await _memo(execution)
        told = memo.get("archive")
        if told == archive or (
            told is None and "definition" in memo and batch_workflow_id(key.batch) in batches
        ):
            jobs[key] = None
    return list(jobs)


async def _memo(execution: WorkflowExecution) -> Mapping[str, Any]:
    """What is noted of a workflow; nothing of one that was not started with this key, which may be
    anybody's.
    """
    try:
        return await execution.memo()
    except NotSigned:
        return {}


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


async def _take(
    client: Client,
    handle: WorkflowHandle[Any, Any],
    event: HistoryEvent,
    scheduled: dict[int, tuple[str, str]],
    witness: Witness,
) -> None:
    """Note what an activity gave.

    A result that no worker of ours signed is none: the run that it was given to has failed.
    """
    if event.event_type == _SCHEDULED:
        attributes = event.activity_task_scheduled_event_attributes
        scheduled[event.event_id] = (attributes.activity_type.name, attributes.activity_id)
    elif event.event_type == _COMPLETED:
        completed = event.activity_task_completed_event_attributes
        kind, name = scheduled.get(completed.scheduled_event_id, ("", ""))
        converter = in_activity(client, handle.id, name)
        try:
            match kind:
                case "call_model" | "summarise":
                    witness.replies += await converter.decode(
                        completed.result.payloads, [TurnReply]
                    )
                case "begin_job":
                    witness.begun.append(handle.run_id or "")
                case "end_job":
                    witness.ends += await converter.decode(completed.result.payloads, [StepRef])
        except NotSigned as error:
            # Signed with another of this user's keys: nobody here can say what it holds.
            if error.refusal.may_be_ours:
                raise


def disagreements(archive: JobArchive, witness: Witness) -> Iterator[Finding]:
    """Where the archive says something else than Temporal's history, beside digests, which
    ``examine_job`` compares.
    """
    if witness.begun and archive.definition_key() is None:
        message = (
            f"has no definition, but Temporal's history says that run {witness.begun[0]}"
            " archived it"
        )
        yield _finding(f"{archive.prefix}/definition/0001", Severity.DAMAGE, message)
    for run in witness.runs:
        yield from _vanished(archive, witness, run)
    for reply in witness.replies:
        yield from _changed(archive, reply)
    known = {ref.key for ref in witness.refs}
    for run in witness.runs:
        yield from _unheard_of(archive, run, known)


def _changed(archive: JobArchive, reply: TurnReply) -> Iterator[Finding]:
    """A reply that the archive has otherwise than Temporal's history."""
    try:
        step = archive.step(reply.step)
    # It is damaged or gone, which the examination of the archive tells.
    except ArchiveError:
        return
    said = ModelReply.model_validate(reply.model_dump(include=set(ModelReply.model_fields)))
    held = ModelReply(
        **dict(step.reply), usage=step.usage, cost_usd=step.cost_usd, failed=step.failed_attempts
    )
    if step.capture in WITHOUT_MODEL:
        # No model was called: the step says that nothing was spent, and the job books what its
        # record spent.
        said = said.model_copy(
            update={"usage": held.usage, "cost_usd": held.cost_usd, "failed": held.failed}
        )
    if said != held:
        yield _finding(
            reply.step.key, Severity.DAMAGE, "holds another reply than Temporal's history"
        )


def _unheard_of(archive: JobArchive, run: str, known: Collection[str]) -> Iterator[Finding]:
    """The steps of a run that are none of those which are ``known`` to Temporal's history."""
    steps = [
        key
        for key in archive.store.list(keys.run_prefix(archive.prefix, run))
        if key.endswith(".step")
    ]
    last = next((key for key in reversed(steps) if key in known), "")
    for key in steps:
        if key not in known:
            # The last step may be archived and not told to Temporal yet; one before another cannot
            # be.
            severity = Severity.DAMAGE if key < last else Severity.NOTE
            yield _finding(key, severity, "is a step that Temporal's history does not hold")


def _vanished(archive: JobArchive, witness: Witness, run: str) -> Iterator[Finding]:
    """A run of which Temporal's history has turns, and the archive nothing."""
    prefix = keys.run_prefix(archive.prefix, run)
    turns = [ref.key for ref in witness.refs if ref.key.startswith(prefix)]
    if turns and next(iter(archive.store.list(prefix)), None) is None:
        message = (
            "is not there with all its turns, but Temporal's history has"
            f" {counted(len(turns), 'step')} of it"
        )
        finding = _finding(keys.run_key(archive.prefix, run), Severity.DAMAGE, message)
        yield finding.model_copy(update={"run": run})


def _finding(key: str, severity: Severity, message: str) -> Finding:
    turn_key = keys.parse_turn_key(key)
    run, turn = (turn_key.run, turn_key.turn) if turn_key is not None else (None, None)
    return Finding(
        fault=Fault.HISTORY, severity=severity, run=run, turn=turn, key=key, message=message
    )
