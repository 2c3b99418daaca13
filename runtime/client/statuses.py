"""How jobs that have not ended stand now: queued, running, waiting or paused, and why."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from temporalio.client import WorkflowExecutionStatus

from runtime.archive.standings import ArchivedStanding
from runtime.base.durations import format_duration
from runtime.base.standings import (
    DAMAGED,
    GOING_ON,
    OPEN,
    PAUSED,
    QUEUED,
    RUNNING,
    WAITING,
    waiting_for,
)
from runtime.base.values import JobKey
from runtime.client.control import Control
from runtime.client.lost import WHY_LOST
from runtime.client.moves import Turn
from runtime.client.paged import in_pages
from runtime.client.standing import Standing
from runtime.client.wait_reasons import is_paused, wait_of
from runtime.job.stops import JobStatus
from runtime.server.gathered import gathered
from workflows.messages import BatchState

UNKNOWN = f"Temporal does not know of it: {WHY_LOST}"
"""Why a job that the archive has open does not go on."""

LEFT_OPEN = f"the archive has it open, and {UNKNOWN} ('holdfast run' of its file says how to go on)"
"""The same, told to who wants something of the job."""


BEGINS = "begins"
"""Why a job runs that has its place in its batch, and of whose run the archive has nothing yet."""

_NOT_ANEW = GOING_ON | {JobStatus.SUCCEEDED.value, DAMAGED}
"""How those stand that do not begin anew, or of which that is not known."""


def now_of(standing: Standing) -> tuple[str, str]:
    """The status of a job that has not ended, and the reason in a sentence; ``open`` if no worker
    tells.
    """
    progress, trouble = standing.progress, standing.trouble
    if trouble is not None and trouble.seconds > 0:
        seconds = format_duration(max(round(trouble.seconds), 1))
        return WAITING, f"waits {seconds} before attempt {trouble.attempt}, after {trouble.error}"
    if trouble is not None and trouble.held:
        return RUNNING, trouble.error if progress is None else f"turn {progress.turn}: {trouble}"
    if (held := held_up(standing)) is not None:
        return held
    if progress is None:
        return OPEN, ""
    return RUNNING, f"turn {progress.turn}: {progress.phase}"


def held_up(standing: Standing | Turn) -> tuple[str, str] | None:
    """The status and the reason of a job that can do nothing until something comes, or nothing of
    one that works, also where it makes an attempt anew after a pause.
    """
    if standing.awaits:
        return WAITING, waiting_for(standing.awaits)
    progress = standing.progress
    if progress is None or not (wait := wait_of(progress)):
        return None
    return PAUSED if is_paused(progress) else WAITING, wait


async def told_of(control: Control, keys: Sequence[JobKey]) -> dict[JobKey, tuple[str, str]]:
    """How the jobs stand, those alone of which somebody can tell more than that they are open.

    A job that has ended stands as it ended, one that is lost as open, with what is wrong.
    """

    async def one(key: JobKey) -> tuple[str, str]:
        standing = await control.standing(key)
        if standing is None:
            return OPEN, UNKNOWN
        if (outcome := standing.outcome) is not None:
            return str(outcome.status), outcome.reason
        return now_of(standing)

    standings = await gathered(one, keys)
    return {key: told for key, told in zip(keys, standings, strict=True) if told != (OPEN, "")}


async def ended_of(control: Control, keys: Sequence[JobKey]) -> list[JobKey]:
    """Those of the jobs that have ended by what Temporal says of their newest runs; no worker is
    asked.
    """
    known = await gathered(control.newest, keys)
    running = WorkflowExecutionStatus.RUNNING
    return [
        key
        for key, newest in zip(keys, known, strict=True)
        if newest is not None and newest.status is not running
    ]


async def told_by_batch(
    control: Control, batch: str, known: Mapping[str, str]
) -> list[ArchivedStanding] | None:
    """The jobs that wait for their places in a batch, also in pages that it has not read, and those
    that have theirs since a moment, so that the archive does not have them, or their ends of before
    alone; None if the batch runs, and no worker answers for it.

    ``known`` are those that the archive has, and how they stand there.
    """
    state = await control.batch_state(batch)
    if state is None:
        return []
    if state == BatchState():
        return None
    paged = await asyncio.to_thread(in_pages, control.store, state, known)
    why = "the batch is paused" if state.paused else "waits for a place in its batch"
    begin = [
        name
        for name in state.open
        if name not in state.waiting and known.get(name) not in _NOT_ANEW
    ]
    return [
        *(_unarchived(batch, name, RUNNING, BEGINS) for name in begin),
        *(
            _unarchived(batch, name, QUEUED, why)
            for name in dict.fromkeys((*state.waiting, *paged))
            if name in state.waiting or name not in state.open
        ),
    ]


def untold(batch: str) -> str:
    """What is said where ``told_by_batch`` is None: of jobs that wait the archive has nothing."""
    return f"no worker of batch {batch!r} answers: jobs that wait for their places are not told"


def _unarchived(batch: str, name: str, status: str, reason: str) -> ArchivedStanding:
    return ArchivedStanding(JobKey(batch=batch, job=name), run=None, status=status, reason=reason)
