"""What a batch that runs has still to do for jobs that have ended."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from runtime.base.values import JobKey
from runtime.client.control import Control
from runtime.client.paged import in_pages
from runtime.client.plans import JobPlan, Plan, Start
from runtime.server.gathered import gathered
from workflows.messages import BatchState

TRIES = 3
"""How often a batch that runs is asked, whose worker is there, and may be too busy to answer."""


async def goes_on(control: Control, plan: Plan) -> bool:
    """Whether the plan's batch runs, and has something to do for those of its jobs that have ended:
    to begin them again, or to tell of the end. Where no worker tells, it may have.
    """
    if not plan.failed and plan.spec.on_finish is None:
        return False
    state = await control.batch_state(plan.batch)
    if state is None or state == BatchState():
        return state is not None
    if plan.spec.on_finish is not None and not (state.waiting or state.open or state.pages):
        return True
    return bool({job.id for job in plan.failed} & {*state.open}) or bool(
        await _in_line(control, plan, state)
    )


async def with_those_to_come(control: Control, plan: Plan) -> Plan:
    """The plan, and in it those of the jobs that ended without success as they are which the batch
    begins again by itself, or has begun since: an earlier command has asked for it
    (``--rerun-failed``), or they have another try (``retry:``).

    Needs a worker of the batch.
    """
    if not plan.failed:
        return plan
    state = await _told(control, plan.batch)
    waits = await _in_line(control, plan, state)
    others = [job.id for job in plan.failed if job.id not in waits]
    keys = [JobKey(batch=plan.batch, job=id) for id in others]
    newest = dict(zip(others, await gathered(control.newest_run, keys), strict=True))
    known = dict(plan.known)
    for job in plan.failed:
        before = job.outcome.run if job.outcome is not None else ""
        if job.id in waits:
            known[job.id] = JobPlan(job.id, Start.RERUN, before=before)
        # It has begun since, or the batch is about to hear of the end, and says what follows.
        elif newest[job.id] not in {"", before} or job.id in state.open:
            known[job.id] = JobPlan(job.id, Start.RESUMED, turn=job.turn)
    return replace(plan, known=known)


async def _told(control: Control, batch: str) -> BatchState:
    """What a batch says of its jobs; nothing if it does not run, or no worker answers for it."""
    for _ in range(TRIES):
        if (state := await control.batch_state(batch)) != BatchState():
            break
    return state or BatchState()


async def _in_line(control: Control, plan: Plan, state: BatchState) -> set[str]:
    """Those of the jobs that ended without success which wait for their places."""
    failed = {job.id for job in plan.failed}
    paged = await asyncio.to_thread(in_pages, control.store, state, failed)
    return failed & {*state.waiting, *paged}
