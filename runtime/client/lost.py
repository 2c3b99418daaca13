"""Jobs that the archive has and Temporal does not know: its database was lost, or it is another
server.

What ended is not run again, for its turns are paid. What was open goes on out of the archive, if
the user says so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from runtime.archive.catalog import all_jobs
from runtime.archive.forms import End
from runtime.archive.gaps import Gap, unknown_starts
from runtime.archive.job import JobArchive
from runtime.archive.lifecycle.tombstones import half_deleted
from runtime.archive.standings import parent_of
from runtime.archive.stores import ObjectStore
from runtime.base.errors import DefinitionChanged, InputError, ObjectCorrupt
from runtime.base.plurals import counted
from runtime.base.spec.models import BatchSpec, JobSpec
from runtime.base.values import JobKey
from runtime.client.definitions import archived_spec
from runtime.client.masking import masked_spec
from runtime.client.plans import JobPlan, Plan, Start
from runtime.job.stops import JobStatus
from runtime.jobsfile.changes import changes
from workflows.messages import JobOutcome

MOST_LISTED = 20

WHY_LOST = "its database was lost, or it is another server than before"
"""Why Temporal does not know of a job that the archive has."""


def archived_plan(store: ObjectStore, key: JobKey, spec: JobSpec, *, rerun_failed: bool) -> JobPlan:
    """What the archive alone says of a job: new, done, with ``rerun_failed`` begun anew if it ended
    without success, or lost with the last turn that is finished.

    Raises:
        DefinitionChanged: if the archived job was defined otherwise.
        InputError: if it was deleted, and the deletion was broken off with the job's end gone.
        ObjectCorrupt: if what tells how it stands cannot be read: what its newest run was paid for
            must not be paid for again because an older one is open.
    """
    archive = JobArchive.of(store, key)
    runs = archive.runs_that_called()
    if unknown := unknown_starts(archive, runs):
        check_not_half_deleted(archive)
        _refuse_unknown(key, unknown[0])
    # A job that ended before its first call has no run there.
    end = archive.newest_end()
    before = end.run if end is not None else lost_run(archive)
    if not before:
        return JobPlan(spec.id, Start.NEW)
    if end is None:
        check_not_half_deleted(archive)
    # Before definitions are compared: what begins anew may be defined otherwise.
    if end is not None and rerun_failed and end.status != JobStatus.SUCCEEDED:
        # One that was begun anew and lost before its first call has had the order after that end.
        begun = archive.begun_last()
        lost = begun if begun not in {"", *runs} and archive.end(begun) is None else ""
        return JobPlan(spec.id, Start.RERUN, before=lost or before)
    _check_definition(archive, spec)
    if end is not None:
        return JobPlan(
            spec.id, Start.DONE, turn=end.turns, outcome=archived_outcome(key, end), before=before
        )
    return JobPlan(
        spec.id,
        Start.LOST,
        turn=max((step.turn for step in archive.steps()), default=0) if runs else 0,
        before=before,
    )


def lost_run(archive: JobArchive) -> str:
    """The run after which a lost job goes on: the last that made a call, or else the last that
    began; empty if none did.
    """
    runs = archive.runs_that_called()
    return runs[-1] if runs else archive.begun_last()


def check_not_half_deleted(archive: JobArchive) -> None:
    """See that nothing goes on from a job whose deletion was broken off: one without an end may
    have ended, for that goes first, and what is left is to go too.

    Raises:
        InputError: if it was.
    """
    if told := half_deleted(archive.store, archive.job):
        raise InputError(f"{archive.job} {told}. Nothing was started")


def is_open(archive: JobArchive) -> bool:
    """Whether the archive has a job that has begun and not ended."""
    return archive.newest_end() is None and bool(lost_run(archive))


def sub_jobs_by_parent(store: ObjectStore, batch: str) -> dict[str, list[JobKey]]:
    """The sub-jobs of a batch that the archive has, by the names of the jobs that started them.

    Raises:
        ObjectCorrupt: if a definition cannot be read that says whose sub-job it is.
    """
    families: dict[str, list[JobKey]] = {}
    for key in all_jobs(store, batch):
        if parent := parent_of(JobArchive.of(store, key)):
            families.setdefault(parent, []).append(key)
    return families


def unasked_plan(store: ObjectStore, batch: BatchSpec, *, rerun_failed: bool) -> Plan:
    """What the archive says of the jobs of ``batch``, where no server is asked.

    Raises:
        DefinitionChanged: if an archived job is defined otherwise now.
    """
    archived = {key.job for key in all_jobs(store, batch.batch)}
    known: dict[str, JobPlan] = {}
    for spec in batch.jobs:
        if spec.id in archived:
            key = JobKey(batch=batch.batch, job=spec.id)
            plan = archived_plan(store, key, masked_spec(spec), rerun_failed=rerun_failed)
            open_now = plan.start is Start.LOST
            known[spec.id] = replace(plan, start=Start.OPEN) if open_now else plan
    return Plan(batch, tuple(spec.id for spec in batch.jobs), known)


def refuse_lost(store: ObjectStore, plan: Plan, address: str, again: str) -> None:
    """Refuse a plan with lost jobs, and say what can be done.

    Raises:
        InputError: if there are any.
    """
    lost = plan.counted(Start.LOST)
    if lost:
        _refuse(store, plan.batch, lost, address, again)


def _refuse(
    store: ObjectStore, batch: str, lost: tuple[JobPlan, ...], address: str, again: str
) -> NoReturn:
    lines = [
        f"{counted(len(lost), 'job')} of batch {batch} began and did not end, says the archive, and"
        f" Temporal at {address} does not know of it: {WHY_LOST}. Nothing was started."
    ]
    for job in lost[:MOST_LISTED]:
        lines.append(f"  {_stood(store, JobKey(batch=batch, job=job.id), job.turn + 1)}")
    if len(lost) > MOST_LISTED:
        lines.append(f"  and {len(lost) - MOST_LISTED} more")
    lines.append(
        f"To go on with all of them under their own names, after what is archived: {again}"
        " --from-archive"
    )
    lines.append(f"To run them from their first turn again, and pay for it again: {again} --anew")
    raise InputError("\n".join(lines))


def _stood(store: ObjectStore, key: JobKey, turn: int) -> str:
    """Before which statement a lost job stood, and how it is forked there."""
    if not JobArchive.of(store, key).runs_that_called():
        return f"{key} had begun, and made no call"
    return f"{key} stood before statement {turn}: holdfast fork {key}@{turn} --as {key.job}-2"


def _refuse_unknown(key: JobKey, unknown: Gap) -> NoReturn:
    raise ObjectCorrupt(
        f"{unknown}: a run of {key} begins there, and how the job stands is not known"
        f" without it. Nothing was started: 'holdfast log {key}' shows what can be read,"
        f" 'holdfast verify {key}' tells what is damaged"
    )


def _check_definition(archive: JobArchive, spec: JobSpec) -> None:
    archived = archived_spec(archive)
    if archived is None:
        return
    differences = changes(archived, spec)
    if differences:
        raise DefinitionChanged(
            f"job {spec.id!r} is in the archive with another definition: {'; '.join(differences)}."
            " Nothing was started: put the definition back, or give the job another id or the file"
            " another batch"
        )


def archived_outcome(key: JobKey, end: End) -> JobOutcome:
    """How a run ended by what the archive says."""
    return JobOutcome(
        key=key,
        run=end.run,
        status=JobStatus(end.status),
        reason=end.reason,
        turns=end.turns,
        usage=end.usage,
        cost_usd=end.cost_usd,
    )
