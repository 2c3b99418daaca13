"""What a command does with each job of a batch, planned of what Temporal and the archive know of
it. Starts nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.client import WorkflowExecutionDescription, WorkflowExecutionStatus

from activities.replays import ordered_of_reset
from runtime.archive import keys
from runtime.archive.catalog import all_jobs, archive_id
from runtime.archive.gaps import UNREADABLE
from runtime.archive.job import JobArchive
from runtime.base.errors import DefinitionChanged, InputError, ServerError
from runtime.base.spec.models import BatchSpec, JobSpec, Retry
from runtime.base.values import JobKey
from runtime.base.workflow_ids import batch_workflow_id, job_key
from runtime.client.control import Control
from runtime.client.lost import archived_plan
from runtime.client.masking import masked_spec
from runtime.client.own_runs import describe
from runtime.client.plans import JobPlan, Plan, Start, is_large
from runtime.client.standing import run_outcome
from runtime.job.stops import JobStatus
from runtime.jobsfile.changes import changes, definition_digest
from runtime.server.authentic import NotSigned, in_workflow
from runtime.server.gathered import AT_A_TIME, gathered
from workflows.messages import JobOrder, batch_queue


async def plan_batch(
    control: Control, batch: BatchSpec, *, rerun_failed: bool, anew: bool = False
) -> Plan:
    """What to do with each job of ``batch``.

    A job that Temporal does not know, and the archive does, is done if it ended there; else it is
    lost, or with ``anew`` new.

    Raises:
        DefinitionChanged: if a job that was started is defined otherwise now.
        InputError: if the batch's archive is another one.
    """
    await check_archive(control, batch.batch)
    begun = await _begun(control, batch.batch) if is_large(batch.jobs) else None
    one = partial(_plan_job, control, batch.batch, rerun_failed=rerun_failed, anew=anew)
    ids: list[str] = []
    known: dict[str, JobPlan] = {}
    tries: dict[str, Retry] = {}
    # Equal ones are kept once: a batch may have a hundred thousand jobs.
    same: dict[Retry, Retry] = {}
    queues = False
    # In portions: each job asked of holds what the server said of it until it is planned.
    for some in _some(batch.jobs, AT_A_TIME * 4):
        ids += [spec.id for spec in some]
        tries |= {job.id: same.setdefault(job.retry, job.retry) for job in some if job.retry.times}
        queues = queues or any(tool.queue for spec in some for tool in spec.tools)
        # Before anything is compared: what Temporal and the archive have of a job is masked.
        asked = [masked_spec(spec) for spec in some if begun is None or spec.id in begun]
        known |= {plan.id: plan for plan in await gathered(one, asked)}
    known = {id: plan for id, plan in known.items() if plan != JobPlan(id, Start.NEW)}
    return Plan(batch, tuple(ids), known, tries, queues)


async def plan_retry(control: Control, key: JobKey, spec: JobSpec) -> JobPlan:
    """What a retry does with a job, which is defined as the archive has it: it starts anew if it
    ended without success, and is left as it is else.
    """
    description = await control.newest(key)
    if description is None:
        return await asyncio.to_thread(archived_plan, control.store, key, spec, rerun_failed=True)
    if description.status is WorkflowExecutionStatus.RUNNING:
        return JobPlan(spec.id, Start.RESUMED)
    outcome = await run_outcome(control.client, key, description)
    if outcome.status is JobStatus.SUCCEEDED:
        return JobPlan(spec.id, Start.DONE, outcome=outcome, turn=outcome.turns)
    return _anew(spec.id, description)


async def check_archive(control: Control, batch: str) -> None:
    """See that the archive is the batch's.

    Raises:
        InputError: if it is another one.
    """
    description = await describe(control.client, batch_workflow_id(batch))
    if description is None:
        return
    try:
        other = await description.memo_value("archive", default="")
    except NotSigned as error:
        if error.refusal.may_be_ours:
            raise
        return
    # Whoever started a workflow of that name without it was none of Holdfast's clients.
    if other and other != await asyncio.to_thread(archive_id, control.store):
        where = await description.memo_value("store", default="another store")
        if where == str(control.store):
            raise InputError(
                f"batch {batch!r} had its archive in {where}, and what is there now is another one"
                " that was made since: put the batch's archive back there, or name another batch"
            )
        raise InputError(
            f"batch {batch!r} has its archive in {where}, and this command would use"
            f" {control.store}: name the batch's archive ('store' in the jobs file, --store or"
            " HOLDFAST_STORE), or name another batch"
        )


async def _begun(control: Control, batch: str) -> set[str]:
    """The jobs of a batch that the archive or Temporal knows.

    One that has begun in the last moment may be missing. It does no harm to take it for new: the
    batch passes over a job that has begun.
    """
    archived = await asyncio.to_thread(all_jobs, control.store, batch)
    names = {key.job for key in archived}
    query = f"WorkflowType = 'JobWorkflow' AND TaskQueue = '{batch_queue(batch)}'"
    async for execution in control.client.list_workflows(query):
        if (key := job_key(execution.id)) is not None and key.batch == batch:
            names.add(key.job)
    return names


def _some(specs: Sequence[JobSpec], size: int) -> Iterator[Sequence[JobSpec]]:
    for start in range(0, len(specs), size):
        yield specs[start : start + size]


async def _plan_job(
    control: Control, batch: str, spec: JobSpec, *, rerun_failed: bool, anew: bool
) -> JobPlan:
    key = JobKey(batch=batch, job=spec.id)
    description = await control.newest(key)
    if description is None:
        known = await asyncio.to_thread(
            archived_plan, control.store, key, spec, rerun_failed=rerun_failed
        )
        if anew and known.start is Start.LOST:
            return JobPlan(spec.id, Start.NEW, before=known.before)
        return known
    running = description.status is WorkflowExecutionStatus.RUNNING
    outcome = None if running else await run_outcome(control.client, key, description)
    failed = outcome is not None and outcome.status is not JobStatus.SUCCEEDED
    # Before definitions are compared: what begins anew may be defined otherwise.
    if failed and rerun_failed:
        return _anew(spec.id, description)
    await _check_definition(control, description, spec, failed=failed)
    if running:
        archive, run = JobArchive.of(control.store, key), description.run_id or ""
        turn = await asyncio.to_thread(archive.last_turn, run)
        # A run that has made no call may go on after the turns of another one.
        turn = turn or await _turns_before(control, description)
        before = await asyncio.to_thread(_ended_before, archive, run)
        return JobPlan(spec.id, Start.RESUMED, turn=turn, before=before)
    return JobPlan(spec.id, Start.DONE, outcome=outcome, turn=outcome.turns if outcome else 0)


def _ended_before(archive: JobArchive, run: str) -> str:
    """The run whose end is the newest in the archive, while ``run`` goes on and none of its calls
    is there; else empty.
    """
    with suppress(*UNREADABLE):
        end = archive.newest_end()
        return end.run if end is not None and end.run != run else ""
    return ""


def _anew(id: str, ended: WorkflowExecutionDescription) -> JobPlan:
    """The plan that starts a job anew after a run of it that has ended."""
    first = ended.raw_description.workflow_execution_info.first_run_id
    return JobPlan(id, Start.RERUN, before=ended.run_id or "", first=first)


async def _check_definition(
    control: Control, description: WorkflowExecutionDescription, spec: JobSpec, *, failed: bool
) -> None:
    if await description.memo_value("definition", default="") == definition_digest(spec):
        return
    way = "start it anew with --rerun-failed, " if failed else ""
    differences = changes((await _order_of(control, description)).spec, spec)
    raise DefinitionChanged(
        f"job {spec.id!r} was started with another definition: {'; '.join(differences)}."
        f" Nothing was started: {way}put the definition back, or give the job another id or"
        " the file another batch"
    )


async def _order_of(control: Control, description: WorkflowExecutionDescription) -> JobOrder:
    """What a run of a job was started with."""
    handle = control.client.get_workflow_handle(description.id, run_id=description.run_id)
    # The first event alone: a history may have thousands.
    async for event in handle.fetch_history_events(page_size=1):
        started = event.workflow_execution_started_event_attributes.input.payloads
        order: JobOrder
        (order,) = await in_workflow(control.client, handle.id).decode(started, [JobOrder])
        return order
    raise ServerError(f"run {description.run_id} of workflow {description.id} has no history")


async def _turns_before(control: Control, description: WorkflowExecutionDescription) -> int:
    """The last turn that another run has of what this one goes on with."""
    run = WorkflowExecution(workflow_id=description.id, run_id=description.run_id or "")
    reset = await ordered_of_reset(control.client, run)
    if reset is not None and reset.start:
        # The run's own order is that of the one which it was made of.
        return reset.start - 1
    order = await _order_of(control, description)
    if order.origin is None:
        return 0
    replay, parent = order.origin.replay, order.origin.parent
    ordered = replay.start - 1 if replay is not None else 0
    place = keys.parse_turn_key(parent.key) if parent is not None else None
    return max(ordered, place.turn if place is not None else 0)
