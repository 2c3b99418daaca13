"""What a client does with batches and jobs: plan, submit, ask, message, cancel.

Needs no worker of its own.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import Any, Literal, TypeVar

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.failure.v1 import Failure
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.common import (
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.converter import DataConverter
from temporalio.exceptions import FailureError
from temporalio.service import RPCError, RPCStatusCode

from activities.batch_contracts import PageRef
from activities.contracts import Decision
from activities.searchable import has_attributes
from runtime.archive import keys
from runtime.archive.catalog import all_jobs, archive_id
from runtime.archive.handed import told_patch
from runtime.archive.job import JobArchive
from runtime.archive.pages import paged, write_page
from runtime.archive.spending import spent_in
from runtime.archive.stores import ObjectStore
from runtime.base.errors import DefinitionChanged, InputError, NotFound
from runtime.base.failpoints import failpoint
from runtime.base.redaction.masked_edits import Place
from runtime.base.roles import own_roles
from runtime.base.search_attributes import Attribute
from runtime.base.spec.limits import Routes, memo_of, queue_named, role_of
from runtime.base.spec.models import BatchSpec, JobSpec, Retry
from runtime.base.standings import AWAITED_ROLE
from runtime.base.values import JobKey
from runtime.base.workflow_ids import BATCH_WORKFLOW, batch_workflow_id, job_key, job_workflow_id
from runtime.client.limits import routes_of, set_limits
from runtime.client.lost import archived_plan
from runtime.client.masking import masked_message, masked_spec
from runtime.client.own_runs import OwnRuns, describe
from runtime.client.paged import has_begun, in_pages, orders_in
from runtime.client.plans import JobPlan, Plan, Start
from runtime.client.submitted import submissions
from runtime.job.stops import JobStatus
from runtime.jobsfile.changes import changes, definition_digest
from runtime.server.authentic import NotSigned, in_activity, in_workflow
from runtime.server.gathered import AT_A_TIME, gathered
from runtime.server.pollers import is_polled
from runtime.workspace.left import LeftWorkspace, left_by
from workflows.messages import (
    NEW_ORDER,
    BatchNews,
    BatchOrder,
    BatchState,
    JobOrder,
    JobOutcome,
    JobProgress,
    Note,
    Submission,
    again_after,
    batch_queue,
)

Answer = TypeVar("Answer", BatchState, BatchNews)

SUBMIT_BYTES = 500_000
"""Jobs of more bytes go to a batch in pages: a payload may have 2 MiB. So do those of a batch of
more than ``ASKED_EACH``.
"""

ASKED_EACH = 200
"""Of so many jobs the server is asked one by one; of more, which of them it knows."""

STUCK_ATTEMPTS = 3
"""A workflow task that was tried so often fails for a reason that trying again does not mend."""

_RUN_COMMANDS = frozenset({"change_workspace", "open_workspace"})
# A worker answers queries: where there is none, the server would wait for it much longer.
_SHORT = timedelta(seconds=5)
_ABANDONED = {
    WorkflowExecutionStatus.TERMINATED: "the workflow was terminated",
    WorkflowExecutionStatus.TIMED_OUT: "the workflow timed out",
    WorkflowExecutionStatus.FAILED: "the workflow failed",
}


# 90 s in all, which is more than the 60 s for which the server waits for a task that was lost.
READY_TRIES, READY_SECONDS = 180, 0.5
"""How often a batch is given an update that it cannot take yet, and the pause between two tries."""


@dataclass(frozen=True)
class Trouble:
    """Why what a job does now is tried again: the last error, the number of the attempt that comes
    or runs, and when it comes, in seconds from now (0: it runs).
    """

    error: str
    attempt: int
    seconds: float


@dataclass(frozen=True)
class Running:
    """A command of a job's statement that runs now, and the last line that it printed."""

    command: str
    line: str = ""


@dataclass(frozen=True)
class Standing:
    """How a job's newest run stands: its outcome if it has ended, else its progress if a worker
    tells, and since when it runs.
    """

    run: str
    outcome: JobOutcome | None = None
    progress: JobProgress | None = None
    trouble: Trouble | None = None
    running: Running | None = None
    since: datetime | None = None
    awaits: str = ""
    """The queue whose workers alone may make the call that the job waits for; ``role:NAME`` where
    no worker of that role is there.
    """


Wish = Literal["pause", "resume", "withdraw_all"]
"""What a batch may be asked of all its jobs: the signals of its workflow."""


@dataclass(frozen=True)
class Control:
    """A client's side of Holdfast, on one Temporal namespace and one archive."""

    client: Client
    store: ObjectStore

    async def plan(self, batch: BatchSpec, *, rerun_failed: bool, anew: bool = False) -> Plan:
        """What to do with each job of ``batch``. Starts nothing.

        A job that Temporal does not know, and the archive does, is done if it ended there; else it
        is lost, or with ``anew`` new.

        Raises:
            DefinitionChanged: if a job that was started is defined otherwise now.
            InputError: if the batch's archive is another one.
        """
        await self.check_archive(batch.batch)
        archived = await self._known(batch.batch) if len(batch.jobs) > ASKED_EACH else None
        one = partial(self._plan_job, batch.batch, rerun_failed=rerun_failed, anew=anew)
        ids: list[str] = []
        known: dict[str, JobPlan] = {}
        tries: dict[str, Retry] = {}
        # Equal ones are kept once: a batch may have a hundred thousand jobs.
        same: dict[Retry, Retry] = {}
        queues = False
        # In portions: each job asked of holds what the server said of it until it is planned.
        for some in _some(batch.jobs, AT_A_TIME * 4):
            ids += [spec.id for spec in some]
            tries |= {
                job.id: same.setdefault(job.retry, job.retry) for job in some if job.retry.times
            }
            queues = queues or any(tool.queue for spec in some for tool in spec.tools)
            # Before anything is compared: what Temporal and the archive have of a job is masked.
            begun = [masked_spec(spec) for spec in some if archived is None or spec.id in archived]
            known |= {plan.id: plan for plan in await gathered(one, begun)}
        known = {id: plan for id, plan in known.items() if plan != JobPlan(id, Start.NEW)}
        return Plan(batch, tuple(ids), known, tries, queues)

    async def _known(self, batch: str) -> set[str]:
        """The jobs of a batch that the archive or Temporal knows.

        One that has begun in the last moment may be missing. It does no harm to take it for new:
        the batch passes over a job that has begun.
        """
        archived = await asyncio.to_thread(all_jobs, self.store, batch)
        names = {key.job for key in archived}
        query = f"WorkflowType = 'JobWorkflow' AND TaskQueue = '{batch_queue(batch)}'"
        async for execution in self.client.list_workflows(query):
            if (key := job_key(execution.id)) is not None and key.batch == batch:
                names.add(key.job)
        return names

    async def queues(self, plan: Plan) -> tuple[str, ...]:
        """The queues by which limited calls of the plan's jobs go: its workers work on them too."""
        archive = await asyncio.to_thread(archive_id, self.store)
        routes = routes_of(plan.spec.limits, plan.spec.priority, archive)
        return routes.queues if routes is not None else ()

    async def submit(self, plan: Plan) -> None:
        """Start what the plan starts, and set the batch's concurrency.

        Giving the same plan twice starts nothing twice.

        Needs a worker of the batch.

        Raises:
            DefinitionChanged: if one of the jobs was started meanwhile with another definition.
        """
        batch = plan.spec
        archive = await asyncio.to_thread(archive_id, self.store)
        split = own_roles() is not None
        routes = routes_of(batch.limits, batch.priority, archive, queues=plan.queues, roles=split)
        if routes is not None:
            # Before the first call can go by these queues.
            await set_limits(self.client, routes, batch.limits)
        try:
            if plan.new or plan.counted(Start.RERUN):
                submission = await self._submission(plan, routes)
                failpoint("submit.before")
                memo = self._memo(archive, routes)
                await _when_ready(partial(self._submit, plan.batch, submission, memo))
                failpoint("submit.after")
            else:
                await self._set_concurrency(plan.spec)
        except WorkflowUpdateFailedError as error:
            raise DefinitionChanged(
                f"{error.cause}. Give the same command again to see what changed"
            ) from error

    async def retry(self, plan: Plan, routes: Routes | None) -> None:
        """Start anew what the plan starts, by these ``routes``.

        Needs no worker: a batch that has none does so when one comes. Giving the same plan twice
        starts nothing twice.
        """
        submission = await self._submission(plan, routes)
        archive = await asyncio.to_thread(archive_id, self.store)
        failpoint("retry.before")
        handle = self.client.get_workflow_handle(batch_workflow_id(plan.batch))
        begins = await self._for_a_run_that_begins(
            plan.batch, submission, lambda: handle.signal("retry", submission)
        )
        if begins is not None:
            await self._begin_by_retry(plan.batch, begins, self._memo(archive, routes))
        failpoint("retry.after")

    async def _begin_by_retry(
        self, batch: str, submission: Submission, memo: dict[str, Any]
    ) -> None:
        await self.client.start_workflow(
            BATCH_WORKFLOW,
            BatchOrder(batch=batch),
            id=batch_workflow_id(batch),
            task_queue=batch_queue(batch),
            start_signal="retry",
            start_signal_args=[submission],
            # As for an update.
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            memo=memo,
            search_attributes=await self._found_by(batch),
        )

    def _memo(self, archive: str, routes: Routes | None) -> dict[str, Any]:
        """What workers read of a batch before they take it."""
        return {"archive": archive, "store": str(self.store), **memo_of(routes)}

    async def _submission(self, plan: Plan, routes: Routes | None) -> Submission:
        """What begins, as a batch takes it."""
        anew = plan.counted(Start.RERUN)
        # In pages, which pass over what has begun as they are read, also where a few are left:
        # while a large batch is asked for, jobs begin and end of which it keeps no note.
        orders = _portion(_orders(plan)) if len(plan.ids) <= ASKED_EACH else None
        pages = () if orders is not None else await asyncio.to_thread(self._paged, plan)
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

    async def _for_a_run_that_begins(
        self, batch: str, submission: Submission, give: Callable[[], Awaitable[object]]
    ) -> Submission | None:
        """The submission, with what the batch's jobs have spent of its budget; None if the batch
        runs, and so knows that itself: then it was given the submission by ``give``.
        """
        if submission.budget is None:
            return submission
        description = await describe(self.client, batch_workflow_id(batch))
        if description is not None and description.status is WorkflowExecutionStatus.RUNNING:
            try:
                await give()
            except RPCError as error:
                # It has ended meanwhile, and its last jobs spent what only the archive knows.
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
            else:
                return None
        spent = await asyncio.to_thread(spent_in, self.store, batch)
        return submission.model_copy(update={"spent": spent})

    def _paged(self, plan: Plan) -> tuple[PageRef, ...]:
        """Archive the definitions of the jobs that begin, in pages."""
        orders = (order.model_dump(mode="json") for order in _orders(plan))
        pages = []
        for page in paged(orders):
            failpoint("submit.page")
            pages.append(PageRef(digest=write_page(self.store, page), jobs=len(page)))
        return tuple(pages)

    async def _submit(self, batch: str, submission: Submission, memo: dict[str, str]) -> None:
        """Hand jobs to the batch, which is started if it does not run."""
        handle = self.client.get_workflow_handle(batch_workflow_id(batch))
        begins = await self._for_a_run_that_begins(
            batch, submission, lambda: handle.execute_update("submit", submission)
        )
        if begins is None:
            return
        await self.client.execute_update_with_start_workflow(
            "submit",
            begins,
            start_workflow_operation=WithStartWorkflowOperation(
                BATCH_WORKFLOW,
                BatchOrder(batch=batch),
                id=batch_workflow_id(batch),
                task_queue=batch_queue(batch),
                # One that runs takes the jobs in; one that has ended begins again under its name.
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                memo=memo,
                search_attributes=await self._found_by(batch),
            ),
        )

    async def _found_by(self, batch: str) -> TypedSearchAttributes:
        """What Temporal's list finds a batch's workflow by, beside its jobs."""
        if not await has_attributes(self.client):
            return TypedSearchAttributes.empty
        name = SearchAttributeKey.for_keyword(Attribute.BATCH)
        return TypedSearchAttributes([SearchAttributePair(name, batch)])

    async def standing(self, key: JobKey) -> Standing | None:
        """How the job's newest run stands; None if it was never started."""
        description = await self._own.newest(key)
        if description is None:
            return None
        run = description.run_id or ""
        handle = self._job(key, run)
        if description.status is not WorkflowExecutionStatus.RUNNING:
            return Standing(run, outcome=await self._ended(key, description))
        return Standing(
            run,
            progress=await self._progress(handle),
            trouble=await self._trouble(description),
            running=await self._running(description),
            since=description.start_time,
            awaits=await self._awaited(description),
        )

    async def _trouble(self, description: WorkflowExecutionDescription) -> Trouble | None:
        """Why the job is tried again, if it is: an activity's last failure, or a workflow task that
        fails each time.
        """
        for pending in description.raw_description.pending_activities:
            if pending.HasField("last_failure"):
                due = pending.next_attempt_schedule_time
                comes = (
                    due.ToDatetime(tzinfo=UTC)
                    if pending.HasField("next_attempt_schedule_time")
                    else None
                )
                wait = (comes - datetime.now(UTC)).total_seconds() if comes is not None else 0.0
                # Of a worker that died, others have told, outside of its activity.
                own = in_activity(self.client, description.id, pending.activity_id)
                error = await _told(pending.last_failure, (own, self.client.data_converter))
                return Trouble(error, pending.attempt, max(wait, 0.0))
        task = description.raw_description.pending_workflow_task
        if task.attempt >= STUCK_ATTEMPTS:
            return Trouble(
                "the workflow's task fails; the worker's output and Temporal's web UI say why",
                task.attempt,
                0.0,
            )
        return None

    async def _awaited(self, description: WorkflowExecutionDescription) -> str:
        """What a call waits for that no worker has taken yet; empty if there is none."""
        for pending in description.raw_description.pending_activities:
            if pending.state != PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED:
                continue
            task_queue = pending.activity_options.task_queue.name
            if (queue := queue_named(task_queue)) is not None:
                return queue
            role = role_of(task_queue)
            if role is not None and not await is_polled(self.client, task_queue):
                return f"{AWAITED_ROLE}{role}"
        return ""

    async def outcome(self, key: JobKey) -> JobOutcome | None:
        """How the job's newest run ended; None while it is open, and before it was started."""
        description = await self._own.newest(key)
        if description is None or description.status is WorkflowExecutionStatus.RUNNING:
            return None
        return await self._ended(key, description)

    async def batch_state(self, batch: str) -> BatchState | None:
        """What the batch says of its jobs; None if it does not run, nothing if no worker answers
        for it.
        """
        return await self._asked(batch, BatchState, "state")

    async def batch_news(self, batch: str, known: int) -> BatchNews | None:
        """What has happened in a batch since ``known`` runs of its jobs had ended; None if it does
        not run, nothing if no worker answers for it.
        """
        return await self._asked(batch, BatchNews, "news", known)

    async def last_news(self, batch: str, known: int) -> BatchNews:
        """What had happened in a batch that has ended, as ``batch_news`` has it; nothing if no
        worker answers for it.
        """
        return await self._answer(batch, BatchNews, "news", known)

    async def batch_end(self, batch: str) -> None:
        """Wait until a batch's workflow has ended, or cannot be asked: at once if there is none."""
        with suppress(RPCError, WorkflowFailureError, NotSigned):
            await self.client.get_workflow_handle(batch_workflow_id(batch)).result()

    async def batch_failure(self, batch: str) -> str:
        """Why the batch's workflow has failed; nothing if it has not."""
        handle = self.client.get_workflow_handle(batch_workflow_id(batch))
        description = await describe(self.client, handle.id)
        if description is None or description.status is not WorkflowExecutionStatus.FAILED:
            return ""
        try:
            await handle.result()
        except WorkflowFailureError as error:
            return error.cause.message if isinstance(error.cause, FailureError) else ""
        return ""

    async def _asked(
        self, batch: str, answer: type[Answer], query: str, *arguments: int
    ) -> Answer | None:
        """What a batch answers; None if it does not run, an empty one if no worker does for it."""
        description = await describe(self.client, batch_workflow_id(batch))
        if description is None or description.status is not WorkflowExecutionStatus.RUNNING:
            return None
        return await self._answer(batch, answer, query, *arguments)

    async def _answer(
        self, batch: str, answer: type[Answer], query: str, *arguments: int
    ) -> Answer:
        """What a batch answers, be it running or not; an empty one if no worker does for it."""
        handle = self.client.get_workflow_handle(batch_workflow_id(batch))
        try:
            told: Answer = await handle.query(
                query, args=arguments, result_type=answer, rpc_timeout=_SHORT
            )
            return told
        # An answer that is not signed is no worker's of ours: as if none had answered.
        except (RPCError, WorkflowQueryFailedError, NotSigned):
            return answer()

    async def send(self, key: JobKey, text: str) -> None:
        """Give a running job a message.

        Raises:
            NotFound: if the job does not run.
        """
        archive = JobArchive.of(self.store, key)
        masked = await asyncio.to_thread(masked_message, archive, text)
        await self._signal(key, "message", Note.of(masked))

    async def decide(
        self,
        key: JobKey,
        *,
        question: str,
        approved: bool,
        by: str,
        reason: str,
        arguments: dict[str, Any] | None,
        kept: tuple[Place, ...] = (),
    ) -> None:
        """Answer the question that a job waits with; ``arguments`` stand in for those of the call,
        but at the places that are ``kept``.

        Raises:
            NotFound: if the job does not run.
        """
        archive = JobArchive.of(self.store, key)
        masked = await asyncio.to_thread(masked_message, archive, reason) if reason else ""
        decision = Decision(
            question=question,
            approved=approved,
            by=by,
            at=time.time(),
            reason=masked,
            arguments=arguments,
            kept=kept,
        )
        await self._signal(key, "decide", decision)

    async def condense(self, key: JobKey) -> None:
        """Ask a running job to forget older turns before its next model call.

        Raises:
            NotFound: if the job does not run.
        """
        await self._signal(key, "condense", Note.of())

    async def waits(self, key: JobKey) -> bool:
        """Whether the job waits for its place in a batch that runs.

        Where no worker of the batch tells, its history does.
        """
        state = await self.batch_state(key.batch)
        if state is None:
            return False
        if state != BatchState():
            return key.job in state.waiting or await self._is_paged(key, state)
        newest = await self._own.newest(key)
        if newest is not None and newest.status is WorkflowExecutionStatus.RUNNING:
            return False
        orders = await self._submitted(key)
        if newest is None:
            return bool(orders)
        # Of an order without an id nobody knows.
        return await asyncio.to_thread(
            lambda: any(order and not has_begun(self.store, key, order) for order in orders)
        )

    async def _is_paged(self, key: JobKey, state: BatchState) -> bool:
        """Whether a job is in one of the pages that are left, and has not begun by it."""
        if not state.pages or key.job in state.open:
            return False
        return key.job in await asyncio.to_thread(in_pages, self.store, state, {key.job})

    async def pause(self, key: JobKey) -> None:
        """Have no turn of a running job begin until ``resume``.

        Raises:
            NotFound: if the job does not run.
        """
        await self._signal(key, "pause", Note.of())

    async def resume(self, key: JobKey) -> None:
        """Have a paused job go on.

        Raises:
            NotFound: if the job does not run.
        """
        await self._signal(key, "resume", Note.of())

    async def hold_batch(self, batch: str, wish: Wish) -> None:
        """Have no job of a running batch begin, or have them begin again, or have all of them end
        as cancelled; those that run are asked by themselves.

        Raises:
            NotFound: if the batch does not run.
        """
        try:
            handle = self.client.get_workflow_handle(batch_workflow_id(batch))
            await handle.signal(wish, Note.of())
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            raise NotFound(
                f"batch {batch!r} does not run: it has ended, or was never started"
            ) from error

    async def _signal(self, key: JobKey, name: str, argument: Note | Decision) -> None:
        try:
            await self._job(key).signal(name, argument)
        except RPCError as error:
            raise _not_running(key, error) from error

    async def cancel(self, key: JobKey) -> None:
        """Ask a job that runs, or waits for its place in its batch, to stop.

        It ends as ``cancelled``.

        Raises:
            NotFound: if the job does neither.
        """
        if await self.waits(key):
            batch = self.client.get_workflow_handle(batch_workflow_id(key.batch))
            await batch.signal("withdraw", Note.of(key.job))
            return
        # The server accepts the cancellation of a run that has ended, and does nothing.
        if await self.outcome(key) is not None:
            raise _does_not_run(key)
        try:
            await self._job(key).cancel()
        except RPCError as error:
            raise _not_running(key, error) from error

    def result(self, outcome: JobOutcome) -> Any:
        """The result that the job's ``finish`` was given, from the archive."""
        end = JobArchive.of(self.store, outcome.key).end(outcome.run)
        return None if end is None else end.result

    def patch(self, outcome: JobOutcome) -> dict[str, Any] | None:
        """The patch that was handed over with the result, as results tell of it; None if none
        was.
        """
        archive = JobArchive.of(self.store, outcome.key)
        return told_patch(archive, archive.end(outcome.run))

    def workspace(self, outcome: JobOutcome) -> LeftWorkspace | None:
        """What the job left of its own workspace, from the archive; None if it has none."""
        return left_by(JobArchive.of(self.store, outcome.key), outcome.run)

    async def _plan_job(
        self, batch: str, spec: JobSpec, *, rerun_failed: bool, anew: bool
    ) -> JobPlan:
        key = JobKey(batch=batch, job=spec.id)
        description = await self._own.newest(key)
        if description is None:
            known = await asyncio.to_thread(
                archived_plan, self.store, key, spec, rerun_failed=rerun_failed
            )
            if anew and known.start is Start.LOST:
                return JobPlan(spec.id, Start.NEW, before=known.before)
            return known
        run = description.run_id or ""
        running = description.status is WorkflowExecutionStatus.RUNNING
        outcome = None if running else await self._ended(key, description)
        failed = outcome is not None and outcome.status is not JobStatus.SUCCEEDED
        # Before definitions are compared: what begins anew may be defined otherwise.
        if failed and rerun_failed:
            return _anew(spec.id, description)
        await self._check_definition(self._job(key, run), description, spec, failed=failed)
        if running:
            turn = await asyncio.to_thread(self._turn, key, run)
            return JobPlan(spec.id, Start.RESUMED, turn=turn)
        return JobPlan(spec.id, Start.DONE, outcome=outcome, turn=outcome.turns if outcome else 0)

    async def newest_run(self, key: JobKey) -> str:
        """The job's newest run; empty if Temporal knows none."""
        description = await self._own.newest(key)
        return (description.run_id or "") if description is not None else ""

    async def plan_retry(self, key: JobKey, spec: JobSpec) -> JobPlan:
        """What a retry does with a job, which is defined as the archive has it: it starts anew if
        it ended without success, and is left as it is else.
        """
        description = await self._own.newest(key)
        if description is None:
            return await asyncio.to_thread(archived_plan, self.store, key, spec, rerun_failed=True)
        if description.status is WorkflowExecutionStatus.RUNNING:
            return JobPlan(spec.id, Start.RESUMED)
        outcome = await self._ended(key, description)
        if outcome.status is JobStatus.SUCCEEDED:
            return JobPlan(spec.id, Start.DONE, outcome=outcome, turn=outcome.turns)
        return _anew(spec.id, description)

    async def check_archive(self, batch: str) -> None:
        """See that the archive is the batch's.

        Raises:
            InputError: if it is another one.
        """
        description = await describe(self.client, batch_workflow_id(batch))
        if description is None:
            return
        try:
            other = await description.memo_value("archive", default="")
        except NotSigned as error:
            if error.refusal.may_be_ours:
                raise
            return
        # Whoever started a workflow of that name without it was none of Holdfast's clients.
        if other and other != await asyncio.to_thread(archive_id, self.store):
            where = await description.memo_value("store", default="another store")
            raise InputError(
                f"batch {batch!r} has its archive in {where}, and this command would use"
                f" {self.store}: name the batch's archive ('store' in the jobs file, --store or"
                " HOLDFAST_STORE), or name another batch"
            )

    async def _check_definition(
        self,
        handle: WorkflowHandle[Any, Any],
        description: WorkflowExecutionDescription,
        spec: JobSpec,
        *,
        failed: bool,
    ) -> None:
        if await description.memo_value("definition", default="") == definition_digest(spec):
            return
        way = "start it anew with --rerun-failed, " if failed else ""
        # The first event alone, which has the order: a history may have thousands.
        async for event in handle.fetch_history_events(page_size=1):
            started = event.workflow_execution_started_event_attributes.input.payloads
            (order,) = await in_workflow(self.client, handle.id).decode(started, [JobOrder])
            differences = changes(order.spec, spec)
            raise DefinitionChanged(
                f"job {spec.id!r} was started with another definition: {'; '.join(differences)}."
                f" Nothing was started: {way}put the definition back, or give the job another id or"
                " the file another batch"
            )

    async def _set_concurrency(self, batch: BatchSpec) -> None:
        """Tell a batch that runs of its concurrency, which may have changed since it was
        started.
        """
        handle = self.client.get_workflow_handle(batch_workflow_id(batch.batch))
        try:
            told = Submission(
                # The same update without jobs: it brings the figures alone.
                jobs=(),
                concurrency=batch.concurrency,
                budget=batch.budget,
                on_finish=batch.on_finish,
                id=uuid.uuid4().hex,
            )
            await _when_ready(lambda: handle.execute_update("submit", told))
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise

    async def _submitted(self, key: JobKey) -> set[str]:
        """The ids of a job's orders that were given to its batch's newest run."""
        ids: set[str] = set()
        async for submission in submissions(self.client, key.batch):
            ids |= {order.id for order in submission.jobs if order.key == key}
            ids |= await self._paged_orders(key, submission.pages)
        return ids

    async def _paged_orders(self, key: JobKey, pages: Iterable[PageRef]) -> set[str]:
        """The ids of a job's orders in pages, of those that can be read."""
        return await asyncio.to_thread(
            lambda: {
                str(order["id"])
                for order in orders_in(self.store, pages)
                if order["key"]["job"] == key.job
            }
        )

    async def paged_names(self, pages: Iterable[PageRef]) -> set[str]:
        """The jobs of pages, of those that can be read."""
        return await asyncio.to_thread(
            lambda: {order["key"]["job"] for order in orders_in(self.store, pages)}
        )

    async def _running(self, description: WorkflowExecutionDescription) -> Running | None:
        """The command that runs, as its heartbeats tell: none of the first second."""
        for pending in description.raw_description.pending_activities:
            if pending.activity_type.name in _RUN_COMMANDS and pending.heartbeat_details.payloads:
                converter = in_activity(self.client, description.id, pending.activity_id)
                try:
                    (told,) = await converter.decode(
                        pending.heartbeat_details.payloads[:1], [dict[str, Any]]
                    )
                except NotSigned:
                    return None
                command = str(told.get("command", ""))
                return Running(command, str(told.get("line", ""))) if command else None
        return None

    async def _progress(self, handle: WorkflowHandle[Any, JobOutcome]) -> JobProgress | None:
        """Where a running job stands, asked of its worker; None if none answers now."""
        try:
            progress: JobProgress = await handle.query(
                "progress", result_type=JobProgress, rpc_timeout=_SHORT
            )
            return progress
        except (RPCError, WorkflowQueryFailedError, NotSigned):
            return None

    async def _ended(self, key: JobKey, description: WorkflowExecutionDescription) -> JobOutcome:
        run = description.run_id or ""
        ended = self.client.get_workflow_handle(
            job_workflow_id(key), run_id=run, result_type=JobOutcome
        )
        if description.status is WorkflowExecutionStatus.CANCELED:
            return JobOutcome(key=key, run=run, status=JobStatus.CANCELLED, reason="cancelled")
        if description.status in _ABANDONED:
            reason = _ABANDONED[description.status]
            # For its reason: what did not complete has no result.
            try:
                await ended.result()
            except WorkflowFailureError as error:
                reason = f"{reason}: {error.cause}"
            except NotSigned as error:
                reason = f"{reason}: {error.message}"
            return JobOutcome(key=key, run=run, status=JobStatus.FAILED, reason=reason)
        try:
            outcome: JobOutcome = await ended.result()
        except NotSigned as error:
            if error.refusal.may_be_ours:
                raise
            return JobOutcome(
                key=key,
                run=run,
                status=JobStatus.FAILED,
                reason=f"ended from outside: {error.message}",
            )
        return outcome

    def _job(self, key: JobKey, run: str | None = None) -> WorkflowHandle[Any, JobOutcome]:
        return self.client.get_workflow_handle(
            job_workflow_id(key), run_id=run, result_type=JobOutcome
        )

    @cached_property
    def _own(self) -> OwnRuns:
        return OwnRuns(self.client, self.store)

    def newest_turn(self, key: JobKey) -> int:
        """The last turn of the job's newest run that the archive has, finished or in flight."""
        runs = JobArchive.of(self.store, key).runs()
        return self._turn(key, runs[-1] if runs else None)

    def _turn(self, key: JobKey, run: str | None) -> int:
        """The last turn of a run that the archive has, finished or in flight."""
        # Of a long job's thousands of keys the last alone.
        names = deque(JobArchive.of(self.store, key).lineage.keys(run), maxlen=1) if run else ()
        turn_key = keys.parse_turn_key(names[0]) if names else None
        return turn_key.turn if turn_key is not None else 0


def _anew(id: str, ended: WorkflowExecutionDescription) -> JobPlan:
    """The plan that starts a job anew after a run of it that has ended."""
    first = ended.raw_description.workflow_execution_info.first_run_id
    return JobPlan(id, Start.RERUN, before=ended.run_id or "", first=first)


def _some(specs: Sequence[JobSpec], size: int) -> Iterator[Sequence[JobSpec]]:
    for start in range(0, len(specs), size):
        yield specs[start : start + size]


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


async def _when_ready(update: Callable[[], Awaitable[object]]) -> None:
    """Carry out a batch's update.

    The server refuses it while the batch's task was lost several times in a row, with its workers.

    A worker that lives carries that task out, within the time that the server waits for the last
    one that was lost.

    Raises:
        RPCError: as the update; also if no worker takes the task up.
    """
    for left in reversed(range(READY_TRIES)):
        try:
            await update()
        except RPCError as error:
            if error.status is not RPCStatusCode.FAILED_PRECONDITION or not left:
                raise
            await asyncio.sleep(READY_SECONDS)
        else:
            return


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


async def _told(failure: Failure, converters: Iterable[DataConverter]) -> str:
    """A failure's kind and message, which may be encrypted for one of some readers."""
    kind, message = failure.application_failure_info.type, failure.message
    for converter in converters if failure.HasField("encoded_attributes") else ():
        with suppress(NotSigned):
            decoded = await converter.decode_failure(failure)
            message = decoded.message if isinstance(decoded, FailureError) else str(decoded)
            break
    return f"{kind}: {message}" if kind else message


def _not_running(key: JobKey, error: RPCError) -> NotFound | RPCError:
    return _does_not_run(key) if error.status is RPCStatusCode.NOT_FOUND else error


def _does_not_run(key: JobKey) -> NotFound:
    return NotFound(
        f"job {key} does not run: it has ended, waits for a place, or was never started ('holdfast"
        " ls' lists the jobs)"
    )
