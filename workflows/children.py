"""The jobs that a batch has started, each a child workflow that outlives the batch if need be.

Temporal tells the ends of children to the run alone that started them: one activity awaits those of
the jobs that an earlier run of the batch has started.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from operator import attrgetter
from typing import Any

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import (
    ChildWorkflowError,
    WorkflowAlreadyStartedError,
    is_cancelled_exception,
)
from temporalio.workflow import ChildWorkflowHandle, ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from activities.batch_contracts import Followed, FollowedEnds, FollowOrder
    from runtime.base.spec.limits import memo_of
    from runtime.base.values import JobKey
    from runtime.base.workflow_ids import TASK_LIMIT, job_workflow_id, summary_of
    from runtime.job.stops import JobStatus
    from workflows.beside import Beside
    from workflows.calling import result_of
    from workflows.job import JobWorkflow
    from workflows.messages import BatchCarried, JobOrder, JobOutcome, again_after
    from workflows.patches import STARTS_ONCE, patched

CANCELLED_BESIDE = "carried-cancelled-beside-starts"
"""The patch since which a job of the run before is cancelled also while others start."""

FOLLOWED_FOR = timedelta(hours=6)
"""How long one activity may follow the jobs of an earlier run until one of them ends."""


class Children:
    """The children of ``batch``: those that are open, of which ``starting`` have no run yet, and
    ``unwanted`` are to end as cancelled; and ``runs``, the first run of each job's newest chain of
    runs, also of jobs that have ended.

    ``ended`` is told of each end: the job's name, its status, its outcome unless it had none, and
    its order unless an earlier run of the batch has started it. It is to ``close`` the job.
    """

    def __init__(
        self,
        batch: str,
        carried: BatchCarried,
        beside: Beside,
        ended: Callable[[str, JobStatus, JobOutcome | None, JobOrder | None], None],
    ) -> None:
        self._batch, self._beside, self._ended = batch, beside, ended
        # Asked and sorted, never gone through: a set's order would be another in a replay.
        self.open: set[str] = {one.job for one in carried.open}
        self.starting: set[str] = set()
        self.unwanted: set[str] = set(carried.dropped)
        self.runs: dict[str, str] = dict(carried.runs) | {one.job: one.run for one in carried.open}
        self._handles: dict[str, ChildWorkflowHandle[JobWorkflow, JobOutcome]] = {}

    @property
    def carried(self) -> dict[str, Any]:
        """What the next run of the batch needs, as fields of ``BatchCarried``."""
        return {
            # Sorted: a set's order is another in each process, and this goes into a command.
            "open": tuple(Followed(job=name, run=self.runs[name]) for name in sorted(self.open)),
            "dropped": tuple(sorted(self.unwanted & self.open)),
            "runs": self.runs,
        }

    def has_ended(self, name: str, run: str | None) -> bool:
        """Whether it is the open job's end that a client has seen, which saw that of ``run``: the
        batch has not heard of it yet.
        """
        ended = run is not None and run == self.runs.get(name)
        # While its next run is being started, the one that is known is that of before.
        return ended and not (name in self.starting and patched(STARTS_ONCE))

    def is_next(self, job: JobOrder) -> bool:
        """Whether an order of a page begins an open job anew, after its run has ended."""
        name = job.key.job
        return name in self.open and job.id == again_after(self.runs.get(name, ""))

    def start(self, job: JobOrder) -> None:
        """Start a job, and follow it to its end."""
        # At once, not when the child has started: the loop counts places before that task runs.
        self.open.add(job.key.job)
        self._beside.soon(self._follow(job))

    def cancel(self, name: str) -> None:
        """Have a job that is open, or is started next, end as cancelled."""
        self.unwanted.add(name)
        if (child := self._handles.get(name)) is not None:
            child.cancel()
        elif (
            name in self.open
            and name in self.runs
            and name not in self.starting
            # Asked only where others start: elsewhere a release before this one does the same.
            and (not self.starting or patched(CANCELLED_BESIDE))
        ):
            self._beside.soon(self._cancel_carried(name), whole=True)

    def close(self, name: str) -> bool:
        """A job is open no more; whether it was to end as cancelled."""
        self.open.discard(name)
        self._handles.pop(name, None)
        unwanted = name in self.unwanted
        self.unwanted.discard(name)
        return unwanted

    async def follow_carried(self, jobs: tuple[Followed, ...]) -> None:
        """Follow the jobs that an earlier run has started, to their ends."""
        names = sorted(self.open)
        # A wish that came first may have begun others, which no earlier run has. Where they had a
        # run before, a release before this one followed that, and histories have it.
        if all(name in self.runs for name in names):
            left = {name: self.runs[name] for name in names}
        else:
            left = {one.job: one.run for one in sorted(jobs, key=attrgetter("job"))}
        asked = 0
        while left:
            asked += 1
            followed: FollowedEnds = await result_of(
                "follow_jobs",
                FollowOrder(
                    batch=self._batch,
                    jobs=tuple(Followed(job=name, run=run) for name, run in left.items()),
                ),
                FollowedEnds,
                id=f"follow-{asked}",
                limit=FOLLOWED_FOR,
                summary="the jobs of the run before",
            )
            for one in followed.ends:
                del left[one.job]
                status = JobStatus.CANCELLED if one.cancelled else JobStatus.FAILED
                outcome = JobOutcome.model_validate(one.outcome) if one.outcome else None
                self._ended(one.job, outcome.status if outcome else status, outcome, None)

    async def _follow(self, job: JobOrder) -> None:
        """Run one job to its end."""
        status, name = JobStatus.FAILED, job.key.job
        outcome: JobOutcome | None = None
        self.starting.add(name)
        try:
            child = await workflow.start_child_workflow(
                JobWorkflow.run,
                job,
                id=job_workflow_id(job.key),
                # A batch that ends, or is ended from outside, takes none of its jobs with it.
                parent_close_policy=ParentClosePolicy.ABANDON,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                task_timeout=TASK_LIMIT,
                static_summary=summary_of(job.spec.goal),
                memo={"definition": job.definition, **memo_of(job.routes)},
            )
            self.starting.discard(name)
            self._handles[name] = child
            self.runs[name] = child.first_execution_run_id or ""
            # Withdrawn while its start was under way: there was no handle yet to cancel it by.
            if name in self.unwanted and not job.withdrawn:
                child.cancel()
            outcome = await child
            status = outcome.status
        except WorkflowAlreadyStartedError:
            status = JobStatus.RUNNING
        except ChildWorkflowError as error:
            status = JobStatus.CANCELLED if is_cancelled_exception(error) else JobStatus.FAILED
        finally:
            self.starting.discard(name)
        self._ended(name, status, outcome, job)

    async def _cancel_carried(self, name: str) -> None:
        """Cancel a job that an earlier run of the batch has started."""
        key = JobKey(batch=self._batch, job=name)
        await workflow.get_external_workflow_handle(job_workflow_id(key)).cancel()
