"""Temporal's history as a witness of a job's archive: the digests and replies that it holds of each turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.contracts import JobKey, TurnReply
from runtime.archive import keys
from runtime.archive.findings import Fault, Finding, Severity
from runtime.archive.job import JobArchive
from runtime.archive.records import GIVEN
from runtime.errors import ArchiveError
from runtime.values import ModelReply, StepRef
from workflows.messages import job_workflow_id

_SCHEDULED = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
_COMPLETED = EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED


@dataclass
class Witness:
    """What the histories of a job's runs hold. ``runs`` are those whose history is still there."""

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
        types: dict[int, str] = {}
        try:
            async for event in handle.fetch_history_events():
                await _take(client, event, types, witness)
        except RPCError as error:
            # A run id that Temporal did not give is an invalid argument.
            if error.status not in {RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT}:
                raise
            continue
        witness.runs.append(run)
    return witness


async def _take(client: Client, event: HistoryEvent, types: dict[int, str], witness: Witness) -> None:
    if event.event_type == _SCHEDULED:
        types[event.event_id] = event.activity_task_scheduled_event_attributes.activity_type.name
    elif event.event_type == _COMPLETED:
        completed = event.activity_task_completed_event_attributes
        match types.get(completed.scheduled_event_id):
            case "call_model" | "summarise":
                witness.replies += await client.data_converter.decode(completed.result.payloads, [TurnReply])
            case "end_job":
                witness.ends += await client.data_converter.decode(completed.result.payloads, [StepRef])


def disagreements(archive: JobArchive, witness: Witness) -> Iterator[Finding]:
    """Where the archive says something else than Temporal's history, beside digests, which ``verify_job`` compares."""
    known = {ref.key for ref in witness.refs}
    for reply in witness.replies:
        try:
            step = archive.step(reply.step)
        except ArchiveError:
            continue
        said = ModelReply.model_validate(reply.model_dump(include=set(ModelReply.model_fields)))
        held = ModelReply(**dict(step.reply), usage=step.usage, cost_usd=step.cost_usd)
        if step.capture in GIVEN:
            # No model was called: the step says that nothing was spent, and the job books what its record spent.
            said = said.model_copy(update={"usage": held.usage, "cost_usd": held.cost_usd})
        if said != held:
            yield _finding(reply.step.key, Severity.DAMAGE, "holds another reply than Temporal's history")
    for run in witness.runs:
        prefix = keys.run_prefix(archive.prefix, run)
        steps = [key for key in archive.store.list(prefix) if key.endswith(".step")]
        witnessed = [key for key in steps if key in known]
        for key in steps:
            if key not in known:
                earlier = bool(witnessed) and key < witnessed[-1]
                message = "is a step that Temporal's history does not hold"
                yield _finding(key, Severity.DAMAGE if earlier else Severity.NOTE, message)


def _finding(key: str, severity: Severity, message: str) -> Finding:
    found = keys.parse_turn_key(key)
    run, turn = (found.run, found.turn) if found is not None else (None, None)
    return Finding(fault=Fault.HISTORY, severity=severity, run=run, turn=turn, key=key, message=message)
