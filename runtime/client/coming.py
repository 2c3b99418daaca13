"""What a batch that runs has still to do for jobs that have ended."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from temporalio.client import WorkflowExecutionStatus

from runtime.base.values import JobKey
from runtime.base.workflow_ids import batch_workflow_id
from runtime.client.control import Control
from runtime.client.own_runs import describe
from runtime.client.paged import in_pages
from runtime.client.plans import JobPlan, Plan, Start


async def goes_on(control: Control, plan: Plan) -> bool:
    """Whether the plan's batch runs, and may have something to do for those of its jobs that have
    ended: to begin them again, or to tell of the end.
    """
    if not plan.failed and plan.spec.on_finish is None:
        return False
    description = await describe(control.client, batch_workflow_id(plan.batch))
    return description is not None and description.status is WorkflowExecutionStatus.RUNNING


async def with_those_to_come(control: Control, plan: Plan) -> Plan:
    """The plan, and in it those of the jobs that ended without success as they are which the batch
    begins again by itself: an earlier command has asked for it (``--rerun-failed``), or they have
    another try (``retry:``).

    Needs a worker of the batch.
    """
    failed = {job.id for job in plan.failed}
    state = await control.batch_state(plan.batch) if failed else None
    if state is None:
        return plan
    paged = await asyncio.to_thread(in_pages, control.store, state, failed)
    waits = failed & {*state.waiting, *paged}
    known = dict(plan.known)
    for job in plan.failed:
        key = JobKey(batch=plan.batch, job=job.id)
        if job.id in waits:
            known[job.id] = await control.plan_anew(key)
        elif job.id in state.open:
            # The batch is about to hear of the end, and says what follows.
            known[job.id] = JobPlan(job.id, Start.RESUMED, turn=job.turn)
    return replace(plan, known=known)
