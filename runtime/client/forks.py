"""Forks: a second job that begins where another stood, out of the archive alone (docs/design.md
section 9).

The fork takes up the newest checkpoint before the statement, restores the turns from there on out
of the record without a call, and goes on as ordered. Its first step has the other job's step before
as its parent.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from activities.record import ReplayMode, ReplayOrder, RunName
from activities.sub_jobs import end_in
from runtime.archive.catalog import archive_id
from runtime.archive.checkpoints import checkpoint_before
from runtime.archive.divergences import replay_of
from runtime.archive.forms import End
from runtime.archive.gaps import UNREADABLE, check_turns
from runtime.archive.going_on import check_goes_on
from runtime.archive.job import JobArchive
from runtime.archive.reading import read_ahead
from runtime.archive.recorded import turn_record, user_messages
from runtime.archive.replays import order_begun_by, write_replay
from runtime.archive.stores import ObjectStore
from runtime.base.errors import InputError, NotFound, ObjectCorrupt
from runtime.base.failpoints import failpoint
from runtime.base.roles import own_roles
from runtime.base.spec.limits import Routes, memo_of
from runtime.base.values import JobKey, StepRef
from runtime.base.workflow_ids import JOB_WORKFLOW, TASK_LIMIT, job_workflow_id
from runtime.client.definitions import archived_spec
from runtime.client.lost import (
    check_not_half_deleted,
    is_open,
    lost_run,
    sub_jobs_by_parent,
)
from runtime.client.own_runs import describe
from runtime.client.plans import Plan, Start
from runtime.client.resets import Reset
from runtime.context.sub_job_end import SubJobEnd
from runtime.job.stops import JobStatus
from runtime.jobsfile.changes import definition_digest
from runtime.server.authentic import in_workflow
from workflows.messages import JobOrder, Origin, batch_queue


@dataclass(frozen=True)
class ForkPoint:
    """The turn before whose model call a fork begins, and the record that leads there."""

    source: RunName
    turn: int


async def forks(
    client: Client,
    store: ObjectStore,
    point: ForkPoint,
    orders: Mapping[str, ReplayOrder],
    queue: str | None = None,
) -> list[Reset]:
    """Start a job of the same batch for each name in ``orders``, before turn ``point.turn`` of the
    source; its order holds from there on. None is started unless all can be.

    Where that very fork was started before, by a command that was killed, it is the one that is
    returned, running or ended.

    Raises:
        NotFound: if the source has no such turn.
        InputError: if there is another job of such a name already, or the source is half deleted.
        ArchiveError: if the archive cannot be read.
    """
    await asyncio.to_thread(check_not_half_deleted, JobArchive.of(store, point.source))
    planned = [await _planned(client, store, point, *one) for one in orders.items()]
    where = queue or batch_queue(point.source.batch)
    return [
        there or await _start(client, store, point, job_order, order, where)
        for order, (job_order, there) in zip(orders.values(), planned, strict=True)
    ]


async def _planned(
    client: Client, store: ObjectStore, point: ForkPoint, name: str, order: ReplayOrder
) -> tuple[JobOrder, Reset | None]:
    """What a fork is started with, and the fork itself if it is there already.

    Raises:
        NotFound, InputError, ArchiveError: as ``forks``.
    """
    job_order = await asyncio.to_thread(_order_of, store, point, name, order)
    restore = job_order.origin.restore if job_order.origin is not None else None
    await asyncio.to_thread(
        check_goes_on,
        JobArchive.of(store, point.source),
        point.source.run,
        restore.start if restore is not None else point.turn,
        point.turn - 1,
    )
    key = job_order.key
    if (there := await _started_before(client, store, job_order)) is not None:
        return job_order, there
    if await asyncio.to_thread(JobArchive.of(store, key).runs):
        raise InputError(
            f"there is a job {key} already, which Temporal no longer has: name the fork otherwise"
        )
    return job_order, None


async def resume_lost(client: Client, store: ObjectStore, plan: Plan) -> None:
    """Start each lost job of the plan under its own name, if all can go on. Errors as ``go_on``."""
    lost = [
        RunName(batch=plan.batch, job=job.id, run=job.before) for job in plan.counted(Start.LOST)
    ]
    families = await asyncio.to_thread(sub_jobs_by_parent, store, plan.batch) if lost else {}
    await asyncio.to_thread(_check_all, store, lost, families)
    for run in lost:
        await go_on(client, store, run, families)


def _check_all(
    store: ObjectStore, lost: Sequence[RunName], families: Mapping[str, Sequence[JobKey]]
) -> None:
    """``_check_lost`` of each, many at a time: all that they restore is read."""
    for _ in read_ahead(lost, lambda run: _check_lost(store, run, families)):
        pass


def _check_lost(
    store: ObjectStore, source: RunName, families: Mapping[str, Sequence[JobKey]]
) -> None:
    """See that a lost job can go on, and its open sub-jobs, before anything is started.

    Raises:
        InputError: if a sub-job is half deleted.
        ObjectCorrupt: if it cannot; with the statement from which it can be forked instead.
    """
    for key in families.get(source.job, ()):
        below = JobArchive.of(store, key)
        if is_open(below):
            check_not_half_deleted(below)
            run = RunName(batch=key.batch, job=key.job, run=lost_run(below))
            _check_lost(store, run, families)
    archive = JobArchive.of(store, source)
    turn = next_statement(archive, source.run)
    try:
        _going_on(archive, source, turn)
        _check_record(archive, source.run, turn)
    except UNREADABLE as error:
        raise ObjectCorrupt(
            f"{error}: {archive.job} cannot go on after turn {turn - 1} without it. Nothing was"
            f" started: {_instead(archive, source.run, turn)}, 'holdfast verify {archive.job}'"
            " tells what is damaged"
        ) from error


def _instead(archive: JobArchive, run: str, turn: int) -> str:
    """The last statement before ``turn`` from which a run can be gone on with, as a command."""
    for earlier in range(turn - 1, 1, -1):
        with suppress(*UNREADABLE):
            _check_record(archive, run, earlier)
            key = archive.job
            return f"'holdfast fork {key}@{earlier} --as {key.job}-2' goes on before it"
    return "'--anew' runs it from its first turn again"


async def go_on(
    client: Client, store: ObjectStore, source: RunName, families: Mapping[str, Sequence[JobKey]]
) -> Reset:
    """Start a job that Temporal has lost under its own name, after the last turn that the archive
    has of it.

    Its sub-jobs, which ``families`` has by their parents' names, go on before it if they are lost
    too; of the others it begins with the ends, which nobody tells it any more.

    Raises:
        NotFound: if the archive has too little of it.
        InputError: if Temporal has it after all.
        ArchiveError: if the archive cannot be read.
    """
    below = [JobArchive.of(store, key) for key in families.get(source.job, ())]
    for archive in below:
        await _sub_job_goes_on(client, store, archive, families)
    ended = [await asyncio.to_thread(end_in, archive) for archive in below]
    lost = JobArchive.of(store, source)
    turn = await asyncio.to_thread(next_statement, lost, source.run)
    order = await asyncio.to_thread(_going_on, lost, source, turn)
    point = ForkPoint(source, turn)
    job_order = await asyncio.to_thread(
        _order_of, store, point, source.job, order, tuple(end for end in ended if end is not None)
    )
    started = await _start(client, store, point, job_order, order, batch_queue(source.batch))
    # One that ended before the job was there has told nobody.
    open_then = [archive for archive, end in zip(below, ended, strict=True) if end is None]
    for end in [await asyncio.to_thread(end_in, archive) for archive in open_then]:
        if end is not None:
            await _tell(client, source, end)
    return started


def _going_on(archive: JobArchive, source: RunName, turn: int) -> ReplayOrder:
    """The order of a job that goes on at ``turn``, as a replay if the run that was lost was one."""
    own = ReplayOrder(id=uuid.uuid4().hex, start=turn, source=source)
    replay = replay_of(archive, source.run)
    if replay is None:
        return own
    order = ReplayOrder.model_validate(replay.order)
    update: dict[str, Any] = {"id": own.id, "start": turn}
    if not order.follows:
        update["source"] = source
    if turn != order.start:
        # They are of the turn that the replay begins with.
        update |= {"statement": None, "message": None}
    return order.model_copy(update=update)


async def _tell(client: Client, job: JobKey, end: SubJobEnd) -> None:
    """Tell a job of the end of a sub-job, if it runs still. One that is told twice counts once."""
    try:
        await client.get_workflow_handle(job_workflow_id(job)).signal("sub_job_ended", end)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise


async def _sub_job_goes_on(
    client: Client,
    store: ObjectStore,
    archive: JobArchive,
    families: Mapping[str, Sequence[JobKey]],
) -> None:
    """Start a sub-job that is open, and that Temporal does not know, under its own name."""
    key = archive.job
    if await asyncio.to_thread(archive.newest_end) is not None:
        return
    # A command that was killed may have started it.
    if await describe(client, job_workflow_id(key)) is not None:
        return
    run = await asyncio.to_thread(lost_run, archive)
    await go_on(client, store, RunName(batch=key.batch, job=key.job, run=run), families)


async def _start(
    client: Client,
    store: ObjectStore,
    point: ForkPoint,
    job_order: JobOrder,
    order: ReplayOrder,
    queue: str,
) -> Reset:
    """Archive the order, and start the workflow."""
    source, key = point.source, job_order.key
    archive = JobArchive.of(store, key)
    await asyncio.to_thread(
        write_replay,
        archive,
        order.id,
        order.model_dump(mode="json", exclude_defaults=True),
        datetime.now(UTC).isoformat(),
    )
    memo = {
        "definition": job_order.definition,
        "archive": await asyncio.to_thread(archive_id, store),
        "store": str(store),
        **memo_of(job_order.routes),
    }
    failpoint("fork.before")
    try:
        handle = await client.start_workflow(
            JOB_WORKFLOW,
            job_order,
            id=job_workflow_id(key),
            task_queue=queue,
            task_timeout=TASK_LIMIT,
            # Also where a job of that name has ended: its archive would get a second beginning.
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            static_summary=f"fork of {source.batch}/{source.job}@{point.turn}",
            memo=memo,
        )
    except WorkflowAlreadyStartedError as error:
        # Another command was faster, or an earlier try of this one.
        if (there := await _started_before(client, store, job_order)) is not None:
            return there
        raise InputError(
            f"there was a job {key}, which Temporal has just deleted: name the fork otherwise"
        ) from error
    failpoint("fork.after")
    return Reset(key, handle.first_execution_run_id or "", queue)


async def _started_before(client: Client, store: ObjectStore, wanted: JobOrder) -> Reset | None:
    """The fork itself, if a workflow of its name was started with the same order; None if there is
    no workflow of that name.

    Raises:
        InputError: if that is another job.
    """
    key = wanted.key
    try:
        described = await client.get_workflow_handle(job_workflow_id(key)).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise
    # The newest run may have been continued or reset: the first one has the order of the fork.
    first = described.raw_description.workflow_execution_info.first_run_id or described.run_id
    handle = client.get_workflow_handle(described.id, run_id=first)
    started: JobOrder | None = None
    async for event in handle.fetch_history_events(page_size=1):
        payloads = event.workflow_execution_started_event_attributes.input.payloads
        (started,) = await in_workflow(client, described.id).decode(payloads, [JobOrder])
        break
    if started is None or not await asyncio.to_thread(_same, store, started, wanted):
        what = _told(started) if started is not None else "another"
        raise InputError(f"there is a job {key} already, {what}: name the fork otherwise")
    return Reset(key, described.run_id or "", described.task_queue, existed=True)


def _same(store: ObjectStore, started: JobOrder, wanted: JobOrder) -> bool:
    """Whether both fork the same timeline at the same statement, to do the same from there."""
    before, now = (
        order.origin.replay if order.origin is not None else None for order in (started, wanted)
    )
    if before is None or now is None or before.source is None or now.source is None:
        return False
    # Each command makes an id of its own; whether both sources are one record, the step before
    # tells.
    others = {"id", "source"}
    if before.model_dump(exclude=others) != now.model_dump(exclude=others):
        return False
    ways = [
        (source.batch, source.job, _step_before(store, source, now.start))
        for source in (before.source, now.source)
    ]
    return ways[0] == ways[1]


def _step_before(store: ObjectStore, source: RunName, turn: int) -> StepRef | None:
    """The step from which a fork goes on: the same one in each run of a job that goes on in another
    run.
    """
    step = JobArchive.of(store, source).find_step(source.run, turn - 1) if turn > 1 else None
    return step.ref if step is not None else None


def _told(started: JobOrder) -> str:
    """What a job is, for one who took it for another."""
    order = started.origin.replay if started.origin is not None else None
    if order is None or order.source is None:
        return "which is no fork"
    return (
        f"a fork of {order.source.batch}/{order.source.job}@{order.start} with other options or of"
        " another run"
    )


def _order_of(
    store: ObjectStore,
    point: ForkPoint,
    name: str,
    order: ReplayOrder,
    ended: tuple[SubJobEnd, ...] = (),
) -> JobOrder:
    """What the fork is started with; ``ended`` are sub-jobs of whose ends it is to hear."""
    source = point.source
    archive = JobArchive.of(store, source)
    last = next_statement(archive, source.run)
    if not 1 <= point.turn <= last:
        check_turns(archive, source.run, point.turn)
        raise NotFound(
            f"run {source.run} of {source.batch}/{source.job} has no statement {point.turn}: they"
            f" are numbered 1 to {last}"
        )
    spec = archived_spec(archive)
    if spec is None:
        raise NotFound(f"the archive has no definition of {source.batch}/{source.job}")
    goes_on_itself = name == source.job
    if not goes_on_itself:
        # Nobody waits for the fork of a sub-job, and its budget is its own.
        spec = spec.model_copy(update={"id": name, "parent": ""})
    saved = checkpoint_before(archive, source.run, point.turn - 1)
    first = saved.turn + 1 if saved is not None else 1
    seed = str(saved.state["key"]) if saved is not None else _first_job(archive, source.run)
    queues, split = any(tool.queue for tool in spec.tools), own_roles() is not None
    return JobOrder(
        key=JobKey(batch=source.batch, job=name),
        spec=spec,
        definition=definition_digest(spec),
        id=order.id,
        origin=Origin(
            checkpoint=saved.ref if saved is not None else None,
            parent=saved.parent if saved is not None else None,
            seed=seed,
            restore=_restoring(archive, point, first, order) if first < point.turn else None,
            replay=order,
            # The fork of another is a timeline of its own, to which nobody has sent them.
            inbox=_begun_with(archive, source.run, first, point.turn) if goes_on_itself else (),
            ended=ended,
        ),
        routes=Routes(archive=archive_id(store), roles=split) if queues or split else None,
        names=order_begun_by(archive) if goes_on_itself else "",
    )


def _restoring(
    archive: JobArchive, point: ForkPoint, first: int, order: ReplayOrder
) -> ReplayOrder:
    """How the turns from ``first`` on are restored, up to the one before the fork's own."""
    last = point.turn - 1
    return ReplayOrder(
        id=order.id,
        start=first,
        until=last,
        # What is answered from the record calls nothing.
        midst=not order.answers and _in_midst(archive, point.source.run, last),
        mode=ReplayMode.RESTORE,
        source=point.source,
    )


def _begun_with(archive: JobArchive, run: str, first: int, turn: int) -> tuple[str, ...]:
    """The messages with which ``turn`` had begun, whose call has no reply; before them those of the
    turns from ``first`` on, which take theirs out of what has arrived.
    """
    begun: tuple[str, ...] = ()
    # What cannot be read of a call that is made again does without.
    with suppress(*UNREADABLE):
        begun = user_messages(archive, run, turn) if archive.has_turn(run, turn) else ()
    if not begun:
        return ()
    restored = (text for one in range(first, turn) for text in user_messages(archive, run, one))
    return (*restored, *begun)


def _check_record(archive: JobArchive, run: str, turn: int) -> None:
    """See that a run can be gone on with before statement ``turn``.

    Raises:
        ObjectCorrupt, ObjectMissing: if what that needs cannot be read.
    """
    saved = checkpoint_before(archive, run, turn - 1)
    check_goes_on(archive, run, saved.turn + 1 if saved is not None else 1, turn - 1)


def _in_midst(archive: JobArchive, run: str, turn: int) -> bool:
    """Whether the record does not say that the statement of a turn has ended: it is the last, and
    may have been in an effect.
    """
    # A turn that has begun its call knows what came of the statement before, archived or not.
    if archive.has_turn(run, turn + 1):
        return False
    record = turn_record(archive, run, turn)
    return record.after is None or (isinstance(record.after, End) and record.executed is None)


def next_statement(archive: JobArchive, run: str) -> int:
    """The last statement before which a fork may begin: one more than a run has, unless that
    finished its job.
    """
    end = archive.end(run)
    finished = end is not None and end.status == JobStatus.SUCCEEDED
    return max((step.turn for step in archive.steps(run)), default=0) + (0 if finished else 1)


def _first_job(archive: JobArchive, run: str) -> str:
    """The job with whose first turn a run's timeline begins: its name seeds the random numbers of
    all that follows.
    """
    return str(archive.lineage.spans(run)[0].job)
