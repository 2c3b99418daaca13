"""``BatchWorkflow``: keeps at most ``concurrency`` jobs of a batch open, each a child workflow.

It holds pages, not jobs (``workflows/paging.py``), and goes on in another run when its history has
become long: what it holds is as large for five jobs as for a hundred thousand.
"""

from __future__ import annotations

from collections import deque

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from activities.batch_contracts import AgainOrder, Definition
    from runtime.base.spec.limits import QUEUES, memo_of
    from runtime.base.spec.models import JobSpec
    from runtime.base.values import JobKey
    from runtime.job.purse import Ask
    from runtime.job.stops import JobStatus
    from workflows.beside import Beside
    from workflows.calling import result_of
    from workflows.children import Children
    from workflows.doors import Ordered
    from workflows.ends import Ends
    from workflows.finishing import Finishing
    from workflows.granting import Granting
    from workflows.heard import Heard
    from workflows.messages import (
        BatchCarried,
        BatchEnd,
        BatchNews,
        BatchOrder,
        BatchState,
        JobOrder,
        JobOutcome,
        Note,
        Submission,
        Withdrawal,
    )
    from workflows.paging import Pages
    from workflows.patches import OWN_ENDS, patched

MOST_EVENTS = 4_000
"""Events of a history after which a batch goes on in another run."""

CARRIED_BYTES = 1_000_000
"""The most bytes of waiting jobs with which it does so."""

QUEUES_TOLD = "limits-upserted"
"""The patch since which the memo of a batch names the queues of what it was given later."""


@workflow.defn(name="BatchWorkflow", sandboxed=False)
class BatchWorkflow(Ordered):
    """The queue of one batch.

    Jobs come by ``submit``; the workflow ends when all that were submitted have ended.
    """

    @workflow.init
    def __init__(self, order: BatchOrder) -> None:
        carried = order.carried or BatchCarried(concurrency=1)
        self.order = order
        self.concurrency = carried.concurrency
        self.submitted = order.carried is not None
        self.waiting: deque[JobOrder] = deque(carried.waiting)
        self.pages = Pages(order.batch, carried)
        self.paged: set[str] = set(carried.paged)
        """The jobs that wait or are open and came in a page: nothing is known of them after."""
        self.started: dict[str, str] = dict(carried.started)
        self.leaving: set[str] = set()
        """The open jobs that were begun to end as cancelled."""
        self.ended: dict[str, JobStatus] = dict(carried.ended)
        self.again: dict[str, JobOrder] = dict(carried.again)
        """Jobs to start anew whose ends a client has seen, and this workflow has not yet."""
        self.tries: dict[str, int] = dict(carried.tries)
        """How often jobs were started again after they had failed."""
        self.ends = Ends(carried)
        self.full = False
        self.routes = carried.routes
        self.memo_changed = False
        self.paused = carried.paused
        self.heard = Heard(carried.heard)
        self.beside = Beside()
        self.children = Children(order.batch, carried, self.beside, self.job_ended)
        self.granting = Granting(
            order.batch, carried.purse, lambda work: self.beside.soon(work, whole=True)
        )
        self.finishing = Finishing(order.batch, carried.finishing, carried.routes)

    @workflow.run
    async def run(self, order: BatchOrder) -> BatchState:
        """Start jobs as places become free, until none is waiting or open.

        Raises:
            ApplicationError: if jobs never began, since their page cannot be read.
        """
        if order.carried is not None and self.children.open:
            self.beside.soon(self.children.follow_carried(order.carried.open))
        await self.beside.until(lambda: self.submitted)
        while self.has_work() or await self.told_of_its_end():
            if self.is_full():
                await self.go_on()
            if self.may_tell():
                self.finishing.begin()
            while self.may_start():
                job = self.waiting.popleft()
                self.start(job)
            if self.wants_page():
                self.beside.soon(self.turn_page(), whole=True)
            self.tell_details()
            await self.beside.until(
                lambda: (
                    self.may_start()
                    or self.wants_page()
                    or self.is_full()
                    or self.may_tell()
                    or not self.has_work()
                )
            )
        if self.pages.lost:
            raise ApplicationError(
                "; ".join(self.pages.lost.values()), type="PageLost", non_retryable=True
            )
        return self.state()

    def tell_details(self) -> None:
        """Say how the batch stands in Temporal's own UI: no event of the history."""
        waiting = len(self.waiting) + len(self.again) + self.pages.jobs
        running, ended = len(self.children.open), self.ends.count
        stands = f"{waiting} queued, {running} running, {ended} runs of jobs ended"
        workflow.set_current_details("; ".join([stands, *self.pages.lost.values()]))

    def may_tell(self) -> bool:
        """Whether the end of a job is to be told now."""
        # A run that is to end begins nothing new: what is under way would never let it end.
        return self.finishing.may_begin and (not self.full or self.finishing.is_behind)

    def may_start(self) -> bool:
        """Whether a job waits that there is a place for, and something to spend; and the ends of
        those before it are told as far as they must be for the batch to go on.
        """
        free = bool(self.waiting) and len(self.children.open) < self.concurrency and not self.paused
        if free and self.full and self.finishing.is_behind:
            return False
        return free and self.granting.may_start(others=bool(self.children.open))

    def has_work(self) -> bool:
        """Whether a job waits or is open, or something else goes on."""
        return bool(
            self.waiting
            or self.children.open
            or self.pages
            or self.finishing.left
            or self.is_busy()
        )

    async def told_of_its_end(self) -> bool:
        """Tell that no job is left, if somebody is to be told; whether there is work since then."""
        self.tell_details()
        await self.finishing.batch_ended(self.pages.lost.values())
        return self.has_work()

    def is_busy(self) -> bool:
        """Whether something goes on that the run may not end in the midst of."""
        return bool(self.beside.busy) or not workflow.all_handlers_finished()

    def wants_page(self) -> bool:
        """Whether a place is free for which no job is here, and a page is left; or the next of the
        jobs that nobody wants may leave, which take no place.
        """
        return not self.beside.busy and (self.may_leave() or self.wants_jobs())

    def may_leave(self) -> bool:
        """Whether a page is to be withdrawn, and the jobs of the one before it have ended."""
        return bool(self.pages.unwanted) and not self.leaving

    def wants_jobs(self) -> bool:
        """Whether a place is free for which no job is here, and a page is left."""
        return (
            bool(self.pages.left)
            and not self.waiting
            and not self.paused
            and len(self.children.open) < self.concurrency
        )

    async def turn_page(self) -> None:
        """Let the jobs of the next page wait for their places, or end those that nobody wants."""
        if self.may_leave():
            await self.turn_unwanted()
            return
        for job in await self.pages.next():
            name = job.key.job
            waits = any(other.key.job == name for other in self.waiting)
            if self.children.is_next(job):
                self.again[name] = job
            elif name not in self.children.open and not waits:
                self.paged.add(name)
                self.ended.pop(name, None)
                self.waiting.append(job)

    async def turn_unwanted(self) -> None:
        """Have the jobs of the next page that nobody wants end as cancelled, where they are now."""
        jobs, begun = await self.pages.next_unwanted()
        for name in begun:
            self.drop(name)
        for job in jobs:
            name = job.key.job
            if self.children.is_next(job):
                self.again[name] = job
            if not self.drop(name):
                self.ended.pop(name, None)
                self.leave(job)

    def is_full(self) -> bool:
        """Whether the batch is to go on in another run, and can."""
        long = self.full or workflow.info().get_current_history_length() > MOST_EVENTS
        # One whose history was long before there were such runs goes on as it began.
        if not long or not (self.full or patched("batch-goes-on")):
            return False
        self.full = True
        # First: this is asked at each event, and what waits is as long as a page.
        if self.children.starting or self.is_busy() or self.finishing.under_way:
            return False
        size = sum(len(job.model_dump_json()) for job in (*self.waiting, *self.again.values()))
        return size <= CARRIED_BYTES and not self.finishing.is_behind

    async def go_on(self) -> None:
        """Go on in another run, which follows the jobs that are open."""
        workflow.continue_as_new(
            BatchOrder(
                batch=self.order.batch,
                carried=BatchCarried(
                    concurrency=self.concurrency,
                    waiting=tuple(self.waiting),
                    again=self.again,
                    started=self.started,
                    ended=self.ended,
                    paged=tuple(sorted(self.paged)),
                    tries=self.tries,
                    purse=self.granting.carried,
                    routes=self.routes,
                    paused=self.paused,
                    heard=self.heard.ids,
                    finishing=self.finishing.carried,
                    **self.pages.carried,
                    **self.children.carried,
                    **self.ends.carried,
                ),
            ),
            # Else the next run has what this one began with.
            memo=workflow.memo() if self.memo_changed else None,
        )

    def start(self, job: JobOrder) -> None:
        """Start a job."""
        job = self.granting.with_slice(job).model_copy(update={"routes": self.routes})
        self.started[job.key.job] = job.definition
        self.children.start(job)

    @workflow.signal
    def pause(self, note: Note) -> None:
        """A user's wish that no job begins until the batch is to go on."""
        if self.heard.is_new(note.id):
            self.paused = True

    @workflow.signal
    def resume(self, note: Note) -> None:
        """A user's wish that jobs begin again."""
        if self.heard.is_new(note.id):
            self.paused = False

    @workflow.signal
    def ask(self, ask: Ask) -> None:
        """A job's wish for more of the batch's budget."""
        self.granting.ask(ask)

    @workflow.signal
    def withdraw(self, note: Note) -> None:
        """A user's wish that the job which the note names, and which waits for its place, end as
        cancelled.

        It is started all the same, to end before its first turn: then it is archived, known to
        Temporal, and given again as any cancelled job is. One that has its place by now is
        cancelled as it would be by itself.
        """
        name = note.text
        if not self.drop(name) and self.pages.left and name not in self.pages.gone:
            self.beside.soon(self.withdraw_paged(name), whole=True)

    @workflow.signal
    def withdraw_pages(self, withdrawal: Withdrawal) -> None:
        """A user's wish that jobs which were in pages end as cancelled, as by ``withdraw``."""
        self.pages.split(withdrawal.splits)

    @workflow.signal
    def withdraw_all(self, note: Note) -> None:
        """A user's wish that all jobs of the batch end as cancelled."""
        self.pages.withdraw_all()
        for name in (
            *self.again,
            *(job.key.job for job in self.waiting),
            *sorted(self.children.open),
        ):
            self.drop(name)

    def drop(self, name: str) -> bool:
        """Have a job that waits or is open end as cancelled; False if it does neither."""
        if name in self.again:
            self.again[name] = self.again[name].model_copy(update={"withdrawn": True})
            return True
        waits = [job for job in self.waiting if job.key.job == name]
        if name in self.children.unwanted:
            return True
        if not (waits or name in self.children.open):
            return False
        self.children.cancel(name)
        for job in waits:
            self.waiting.remove(job)
            self.start(job.model_copy(update={"withdrawn": True}))
        return True

    def leave(self, job: JobOrder) -> None:
        """Begin a job of a page, to end as cancelled."""
        name = job.key.job
        self.paged.add(name)
        self.children.cancel(name)
        self.leaving.add(name)
        self.start(job.model_copy(update={"withdrawn": True}))

    async def withdraw_paged(self, name: str) -> None:
        """Withdraw a job that is in one of the pages."""
        job = await self.pages.withdrawn(name)
        if job is not None and name not in self.children.open:
            self.leave(job)

    @workflow.update
    async def submit(self, submission: Submission) -> BatchState:
        """Add jobs that are not known yet, and those that may be run again.

        Giving the same ones again changes nothing.

        A job that still waits is taken as it is defined now.
        """
        self.take(submission)
        return self.state()

    @workflow.signal
    def retry(self, submission: Submission) -> None:
        """A user's wish that jobs begin anew that ended without success: a submission that waits
        for no worker. It has the figures that the batch has, or its run before had.
        """
        self.take(submission)

    def take(self, submission: Submission) -> None:
        """Take jobs in, and the figures that hold from now on."""
        self.submitted = True
        # Given again, it would bring back the figures of its time.
        if not self.heard.is_new(submission.id):
            return
        self.concurrency = submission.concurrency
        self.granting.take(submission.budget, submission.concurrency, submission.spent)
        self.routes = self.finishing.routes = submission.routes or self.routes
        self.tell_queues()
        self.finishing.order = submission.on_finish
        self.pages.add(submission.pages)
        places = {job.key.job: place for place, job in enumerate(self.waiting)}
        for job in submission.jobs:
            name = job.key.job
            if name in places:
                self.waiting[places[name]] = job
            elif name in self.children.open:
                if self.begins_anew(name, submission):
                    self.again[name] = job
            elif name not in self.ended or self.begins_anew(name, submission):
                self.wait(job)

    def tell_queues(self) -> None:
        """Have the memo name all queues by which limited calls go, for crews and others who look
        for work: those with which open jobs began, and those of the jobs to come.
        """
        known = workflow.memo_value(QUEUES, default=[], type_hint=list[str])
        now = memo_of(self.routes)
        more = sorted({*now.get(QUEUES, ())} - {*known})
        # Asked only where there are others: elsewhere a release before this one does the same.
        if more and patched(QUEUES_TOLD):
            workflow.upsert_memo({**now, QUEUES: [*known, *more]})
            self.memo_changed = True

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
        if name in self.children.open:
            return self.children.has_ended(name, seen)
        run = self.children.runs.get(name, seen)
        return name in self.ended and (seen is None or run == seen)

    def wait(self, job: JobOrder) -> None:
        """Let a job wait for its place, as one of which nothing is known."""
        self.ended.pop(job.key.job, None)
        self.started.pop(job.key.job, None)
        self.tries.pop(job.key.job, None)
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
            open=tuple(sorted(self.children.open)),
            ended=dict(self.ended),
            pages=(*self.pages.left, *self.pages.unwanted),
            paused=self.paused,
        )

    @workflow.query(name="news")
    def news(self, known: int) -> BatchNews:
        """What has happened since ``known`` runs of jobs had ended."""
        first, ends = self.ends.after(known)
        return BatchNews(
            total=self.ends.count,
            first=first,
            ends=ends,
            open=tuple(sorted(self.children.open)),
            waiting=len(self.waiting) + len(self.again) + self.pages.jobs,
        )

    def job_ended(
        self, name: str, status: JobStatus, outcome: JobOutcome | None, job: JobOrder | None
    ) -> None:
        """A job has ended; whether one that an earlier run of the batch has started is to be
        started again is not known here.
        """
        if job is None and outcome is not None and outcome.status is JobStatus.FAILED:
            self.beside.soon(self.end_carried(name, outcome))
        else:
            self.end(name, status, outcome, job)

    async def end_carried(self, name: str, outcome: JobOutcome) -> None:
        """End a job that has failed, and of which nothing is known here: the archive is asked."""
        definition: Definition = await result_of(
            "definition_of_job",
            AgainOrder(key=outcome.key),
            Definition,
            id=f"definition-{self.ends.count}-{name}",
            summary=f"the definition of {name}",
        )
        job = None
        if definition.spec is not None:
            spec = JobSpec.model_validate(definition.spec)
            job = JobOrder(key=outcome.key, spec=spec, definition=self.started.get(name, ""))
        self.end(name, outcome.status, outcome, job)

    def end(
        self, name: str, status: JobStatus, outcome: JobOutcome | None, job: JobOrder | None
    ) -> None:
        """A job has ended; it is started again if its definition says so (``retry``)."""
        unwanted = self.children.close(name)
        self.leaving.discard(name)
        self.granting.ended(name, outcome)
        # A job that its client has begun anew is not retried on top of that.
        anew = self.again.pop(name, None)
        retried = (
            job
            if job is not None and anew is None and not unwanted and self.tries_again(job, outcome)
            else None
        )
        tried = self.tries.get(name, 0) + 1
        if outcome is None:
            key = JobKey(batch=self.order.batch, job=name)
            outcome = JobOutcome(key=key, run="", status=status)
        self.ends.add(BatchEnd(outcome=outcome, again=tried if retried is not None else 0))
        if retried is not None:
            self.tries[name] = tried
            # ``workflow.uuid4`` is the same in each replay; an order's id is given once, so it is a
            # new one.
            again = retried.model_copy(update={"id": workflow.uuid4().hex, "origin": None})
            self.waiting.appendleft(again)
            self.tell_details()
            return
        # Another workflow has the job, as where it was taken back while it waited here: that has
        # not ended, and its end will be none of the batch's.
        if status is not JobStatus.RUNNING or not patched(OWN_ENDS):
            self.finishing.ended(outcome)
        # What came in a page is forgotten, or a batch of a hundred thousand jobs would not fit a
        # payload.
        if name in self.paged:
            self.paged.discard(name)
            for known in (self.started, self.children.runs, self.tries):
                known.pop(name, None)
        else:
            self.ended[name] = status
        if anew is not None:
            self.wait(anew)
        self.tell_details()

    def tries_again(self, job: JobOrder, outcome: JobOutcome | None) -> bool:
        """Whether a job that has ended so is to be started again."""
        return (
            outcome is not None
            and outcome.status is JobStatus.FAILED
            and outcome.cause in job.spec.retry.on
            and self.tries.get(job.key.job, 0) < job.spec.retry.times
        )
