"""``BatchWorkflow``: keeps at most ``concurrency`` jobs of a batch open, each a child workflow that
outlives it if need be.
"""

from __future__ import annotations

import asyncio
from collections import deque

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import (
    ApplicationError,
    ChildWorkflowError,
    WorkflowAlreadyStartedError,
    is_cancelled_exception,
)
from temporalio.workflow import ChildWorkflowHandle, ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from runtime.job.stops import JobStatus
    from workflows.doors import Ordered
    from workflows.job import JobWorkflow
    from workflows.limits import TASK_LIMIT
    from workflows.messages import (
        BatchOrder,
        BatchState,
        JobOrder,
        JobOutcome,
        Note,
        Submission,
        job_workflow_id,
    )


@workflow.defn(name="BatchWorkflow", sandboxed=False)
class BatchWorkflow(Ordered):
    """The queue of one batch.

    Jobs come by ``submit``; the workflow ends when all that were submitted have ended.
    """

    @workflow.init
    def __init__(self, order: BatchOrder) -> None:
        self.order = order
        self.concurrency = 1
        self.submitted = False
        self.waiting: deque[JobOrder] = deque()
        self.started: dict[str, str] = {}
        self.open: dict[str, asyncio.Task[None]] = {}
        self.children: dict[str, ChildWorkflowHandle[JobWorkflow, JobOutcome]] = {}
        self.unwanted: set[str] = set()
        self.ended: dict[str, JobStatus] = {}
        self.runs: dict[str, str] = {}
        """The first run of each job's newest chain of runs."""
        self.again: dict[str, JobOrder] = {}
        """Jobs to start anew whose ends a client has seen, and this workflow has not yet."""

    @workflow.run
    async def run(self, order: BatchOrder) -> BatchState:
        """Start jobs as places become free, until none is waiting or open."""
        await workflow.wait_condition(lambda: self.submitted)
        while self.waiting or self.open or not workflow.all_handlers_finished():
            while self.waiting and len(self.open) < self.concurrency:
                job = self.waiting.popleft()
                self.start(job)
            await workflow.wait_condition(
                lambda: (
                    (bool(self.waiting) and len(self.open) < self.concurrency)
                    or (not self.waiting and not self.open and workflow.all_handlers_finished())
                )
            )
        return self.state()

    def start(self, job: JobOrder) -> None:
        """Start a job."""
        self.started[job.key.job] = job.definition
        self.open[job.key.job] = asyncio.create_task(self.follow(job))

    @workflow.signal
    def withdraw(self, note: Note) -> None:
        """A user's wish that the job which the note names, and which waits for its place, end as
        cancelled.

        It is started all the same, to end before its first turn: then it is archived, known to
        Temporal, and given again as any cancelled job is. One that has its place by now is
        cancelled as it would be by itself.
        """
        name = note.text
        if name in self.again:
            self.again[name] = self.again[name].model_copy(update={"withdrawn": True})
            return
        waits = [job for job in self.waiting if job.key.job == name]
        if name in self.unwanted or not (waits or name in self.open):
            return
        self.unwanted.add(name)
        if (child := self.children.get(name)) is not None:
            child.cancel()
        for job in waits:
            self.waiting.remove(job)
            self.start(job.model_copy(update={"withdrawn": True}))

    @workflow.update
    async def submit(self, submission: Submission) -> BatchState:
        """Add jobs that are not known yet, and those that may be run again.

        Giving the same ones again changes nothing.

        A job that still waits is taken as it is defined now.
        """
        self.submitted = True
        self.concurrency = submission.concurrency
        places = {job.key.job: place for place, job in enumerate(self.waiting)}
        for job in submission.jobs:
            name = job.key.job
            if name in places:
                self.waiting[places[name]] = job
            elif name in self.open:
                if self.begins_anew(name, submission):
                    self.again[name] = job
            elif name not in self.ended or self.begins_anew(name, submission):
                self.wait(job)
        return self.state()

    def begins_anew(self, name: str, submission: Submission) -> bool:
        """Whether the submission starts a job anew whose end its client has seen, be it open here
        still or not.

        A client hears of a job's end from the server, at times before this workflow does. The run
        that it saw tells that end from the one of a rerun that the same submission, given before,
        has started.
        """
        if name not in submission.rerun:
            return False
        seen = submission.ends.get(name)
        if name in self.open:
            return seen is not None and seen == self.runs.get(name)
        return name in self.ended and (seen is None or self.runs.get(name, seen) == seen)

    def wait(self, job: JobOrder) -> None:
        """Let a job wait for its place, as one of which nothing is known."""
        self.ended.pop(job.key.job, None)
        self.started.pop(job.key.job, None)
        self.waiting.append(job)

    @submit.validator
    def check_definitions(self, submission: Submission) -> None:
        """Refuse all of a submission in which a job that was started is defined otherwise."""
        for job in submission.jobs:
            name = job.key.job
            if (
                not self.begins_anew(name, submission)
                and self.started.get(name, job.definition) != job.definition
            ):
                raise ApplicationError(
                    f"job {name!r} was started with another definition",
                    type="DefinitionChanged",
                    non_retryable=True,
                )

    @workflow.query(name="state")
    def state(self) -> BatchState:
        """What has become of the batch's jobs."""
        return BatchState(
            waiting=(*(job.key.job for job in self.waiting), *self.again),
            open=tuple(self.open),
            ended=dict(self.ended),
        )

    async def follow(self, job: JobOrder) -> None:
        """Run one job to its end."""
        status, name = JobStatus.FAILED, job.key.job
        try:
            child = await workflow.start_child_workflow(
                JobWorkflow.run,
                job,
                id=job_workflow_id(job.key),
                parent_close_policy=ParentClosePolicy.ABANDON,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                task_timeout=TASK_LIMIT,
                static_summary=job.spec.goal[:160],
                memo={"definition": job.definition},
            )
            self.children[name] = child
            self.runs[name] = child.first_execution_run_id or ""
            if name in self.unwanted and not job.withdrawn:
                child.cancel()
            outcome: JobOutcome = await child
            status = outcome.status
        except WorkflowAlreadyStartedError:
            status = JobStatus.RUNNING
        except ChildWorkflowError as error:
            status = JobStatus.CANCELLED if is_cancelled_exception(error) else JobStatus.FAILED
        finally:
            del self.open[name]
            self.children.pop(name, None)
            self.unwanted.discard(name)
        self.ended[name] = status
        if (anew := self.again.pop(name, None)) is not None:
            self.wait(anew)
