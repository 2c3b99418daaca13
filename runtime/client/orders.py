"""What a batch is given of a plan: the orders of the jobs that begin, themselves or in pages."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Iterator

from activities.batch_contracts import PageRef
from runtime.archive.pages import paged, write_page
from runtime.archive.stores import ObjectStore
from runtime.base.failpoints import failpoint
from runtime.base.spec.limits import Routes
from runtime.base.spec.models import JobSpec
from runtime.base.values import JobKey
from runtime.client.masking import masked_spec
from runtime.client.plans import JobPlan, Plan, Start, is_large
from runtime.jobsfile.changes import definition_digest
from workflows.messages import NEW_ORDER, JobOrder, Submission, again_after

SUBMIT_BYTES = 500_000
"""Jobs of more bytes go to a batch in pages: a payload may have 2 MiB. So do those of a large
batch.
"""


async def submission_of(store: ObjectStore, plan: Plan, routes: Routes | None) -> Submission:
    """What begins, as a batch takes it."""
    anew = plan.counted(Start.RERUN)
    # In pages, which pass over what has begun as they are read, also where a few are left: while a
    # large batch is asked for, jobs begin and end of which it keeps no note.
    orders = None if is_large(plan.ids) else _portion(_orders(plan))
    pages = () if orders is not None else await asyncio.to_thread(pages_of, store, plan)
    return Submission(
        jobs=orders or (),
        concurrency=plan.spec.concurrency,
        rerun=tuple(job.id for job in anew) if orders else (),
        ends={job.id: job.first for job in anew if job.first} if orders else {},
        pages=pages,
        budget=plan.spec.budget,
        routes=routes,
        on_finish=plan.spec.on_finish,
        id=uuid.uuid4().hex,
    )


def pages_of(store: ObjectStore, plan: Plan) -> tuple[PageRef, ...]:
    """Archive the definitions of the jobs that begin, in pages."""
    orders = (order.model_dump(mode="json") for order in _orders(plan))
    pages = []
    for page in paged(orders):
        failpoint("submit.page")
        pages.append(PageRef(digest=write_page(store, page), jobs=len(page)))
    return tuple(pages)


def _portion(wanted: Iterable[JobOrder]) -> tuple[JobOrder, ...] | None:
    """The orders of jobs that are few enough to be submitted by themselves; None if they are
    not.
    """
    orders: list[JobOrder] = []
    room = SUBMIT_BYTES
    for order in wanted:
        orders.append(order)
        room -= len(orders[-1].model_dump_json())
        if room < 0 and len(orders) > 1:
            return None
    return tuple(orders)


def _orders(plan: Plan) -> Iterator[JobOrder]:
    """The orders of the jobs that begin, one at a time."""
    for spec in plan.spec.jobs:
        job = plan.of(spec.id)
        if job.start in {Start.NEW, Start.RERUN}:
            yield _order(plan.batch, masked_spec(spec), job)


def _order(batch: str, spec: JobSpec, job: JobPlan) -> JobOrder:
    """The order of a job. The same job has the same one, by whatever way it comes to its batch,
    until it has ended and is to begin anew: so the archive knows whether it was carried out.
    """
    before = job.first or job.before
    return JobOrder(
        key=JobKey(batch=batch, job=spec.id),
        spec=spec,
        definition=definition_digest(spec),
        id=again_after(before) if before else NEW_ORDER,
    )
