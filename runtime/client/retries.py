"""Jobs that ended without success, begun anew out of the archive alone: as runs of the same jobs in
their batch, with the definitions that were archived last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from activities.record import ReplayOrder
from runtime.archive.job import JobArchive
from runtime.archive.replays import replays
from runtime.archive.stores import ObjectStore
from runtime.base.errors import NotFound
from runtime.base.spec.models import BatchSpec, JobSpec
from runtime.base.values import JobKey
from runtime.client.control import Control
from runtime.client.definitions import archived_spec
from runtime.client.paged import names_in
from runtime.client.planning import check_archive, plan_retry
from runtime.client.plans import JobPlan, Plan, Start
from runtime.client.submission import submit_again
from runtime.client.submitted import figures
from runtime.client.waiting import waits_by_history
from runtime.server.gathered import gathered
from workflows.messages import BatchState, Submission

SUCCEEDED = "succeeded: there is nothing to do again"
OPEN = "has not ended: 'holdfast cancel' ends a job"
WAITS = "waits for a place in its batch already"
UNKNOWN = "is not in the archive: it has not begun, or there is none of that name"
_REFUSED = {
    Start.DONE: SUCCEEDED,
    Start.RESUMED: OPEN,
    Start.LOST: (
        "began and did not end, and Temporal does not know it: 'holdfast run JOBS_FILE"
        " --from-archive' goes on with it"
    ),
    Start.NEW: "has not begun",
}


async def retry(control: Control, batch: str, names: Sequence[str]) -> dict[str, str]:
    """Begin jobs of a batch anew; returns why each of the others was not, by its name.

    Given again, it begins none anew that waits or runs.

    Raises:
        InputError: if the batch has its archive elsewhere, or a stranger's workflow runs under its
            id.
        NotFound: if Temporal does not know the batch.
        NotSigned: if only others have begun it.
    """
    await check_archive(control, batch)
    state = await control.batch_state(batch)
    waiting = await _waiting(control.store, state)
    keys = [JobKey(batch=batch, job=name) for name in names]

    async def one(key: JobKey) -> tuple[JobPlan | None, JobSpec | None, str]:
        if key.job in waiting:
            return None, None, WAITS
        spec, refused = await asyncio.to_thread(_defined, control.store, key)
        # One that is in the archive is ordered again all the same: the batch drops an order that it
        # has.
        if refused == UNKNOWN and state == BatchState() and await waits_by_history(control, key):
            return None, None, WAITS
        if spec is None:
            return None, None, refused
        plan = await plan_retry(control, key, spec)
        return plan, spec, _REFUSED.get(plan.start, "")

    looked_at = await gathered(one, keys)
    refused = {key.job: why for key, (_, _, why) in zip(keys, looked_at, strict=True) if why}
    begun = [(plan, spec) for plan, spec, why in looked_at if plan and spec and not why]
    if begun:
        last = await _figures(control, batch)
        await submit_again(control, _plan(batch, last, begun), last.routes)
    return refused


def _plan(batch: str, last: Submission, begun: Sequence[tuple[JobPlan, JobSpec]]) -> Plan:
    return Plan(
        BatchSpec(
            batch=batch,
            concurrency=last.concurrency,
            budget=last.budget,
            on_finish=last.on_finish,
            jobs=tuple(spec for _, spec in begun),
        ),
        tuple(plan.id for plan, _ in begun),
        {plan.id: plan for plan, _ in begun},
    )


async def _waiting(store: ObjectStore, state: BatchState | None) -> set[str]:
    """The jobs that wait for their places, as far as a worker tells."""
    if state is None:
        return set()
    paged = await asyncio.to_thread(names_in, store, state.pages)
    return {*state.waiting, *paged}


async def _figures(control: Control, batch: str) -> Submission:
    """The limits, the budget and the rest that no job's definition has."""
    last = await figures(control.client, batch)
    if last is None:
        raise NotFound(
            f"Temporal does not know batch {batch!r} any more, so nobody knows its limits and its"
            " budget: 'holdfast run JOBS_FILE --rerun-failed' starts its jobs anew"
        )
    return last


def _defined(store: ObjectStore, key: JobKey) -> tuple[JobSpec | None, str]:
    """How a job is defined; None, and why, if it does not begin by its definition alone."""
    archive = JobArchive.of(store, key)
    spec = archived_spec(archive)
    if spec is None:
        return None, UNKNOWN
    if spec.parent:
        return None, f"is a sub-job of {spec.parent}, which starts its own when it is begun anew"
    if source := _forked_from(archive):
        return None, f"is a fork of {source}: 'holdfast fork' makes another"
    return spec, ""


def _forked_from(archive: JobArchive) -> str:
    """The job whose fork a job is; empty for none. A job that was lost follows its own record."""
    for one in replays(archive):
        source = ReplayOrder.model_validate(one.order).source
        if source is not None and JobKey(batch=source.batch, job=source.job) != archive.job:
            return f"{source.batch}/{source.job}"
    return ""
