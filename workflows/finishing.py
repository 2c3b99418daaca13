"""Telling others of ends, beside a batch's work: the order of it, no I/O.

What is told never changes how a job or the batch ended, and a receiver that does not hear holds the
batch up for a bounded time: after an end that could not be told, each further one is tried once,
and briefly, until one is heard.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.finish_contracts import FinishNotice, FinishTold
    from runtime.base.roles import Role
    from runtime.base.spec.finish import FinishEvent, OnFinish
    from runtime.base.spec.limits import Routes
    from runtime.job.stops import JobStatus
    from workflows.calling import result_of
    from workflows.messages import BatchTold, JobOutcome
    from workflows.patches import patched
    from workflows.routing import by_role

TRIES = 8
"""Tries at telling of one end, over some two minutes."""

AT_A_TIME = 8
"""Ends that are told at a time."""

CARRIED_BYTES = 500_000
"""The most bytes of ends yet to be told with which a batch goes on in another run."""

BEHIND = "ends-are-told-before-going-on"
"""The patch since which it tells of the others before."""

LOST_TOLD = "lost-batches-are-told"
"""The patch since which the end of a batch is told of which no job ended, since all were lost."""

BRIEF_SECONDS = 5.0
"""What one try may take where the last end could not be told."""

SLACK = timedelta(seconds=30)
"""What an attempt may take beside the receiver's time."""

_PAUSES = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=60))


class Finishing:
    """Who is told of ends, and which are not told yet.

    ``told`` is what an earlier run of the batch hands over, ``routes`` says by which queues.
    """

    def __init__(self, batch: str, told: BatchTold, routes: Routes | None) -> None:
        self._batch = batch
        self.routes = routes
        self.order: OnFinish | None = told.order
        self._due: deque[JobOutcome] = deque(told.due)
        self._due_bytes = sum(map(_size, told.due))
        self._tasks: set[asyncio.Task[None]] = set()
        self._deaf = told.deaf
        self._number = told.number
        self._counts = dict(told.counts)
        self._tokens, self._cost_usd = told.tokens, told.cost_usd

    @property
    def carried(self) -> BatchTold:
        """What the next run of the batch needs."""
        return BatchTold(
            order=self.order,
            due=tuple(self._due),
            deaf=self._deaf,
            number=self._number,
            counts=self._counts,
            tokens=self._tokens,
            cost_usd=self._cost_usd,
        )

    @property
    def under_way(self) -> bool:
        """Whether somebody is being told: the run may not end in the midst of that."""
        return bool(self._tasks)

    @property
    def left(self) -> bool:
        """Whether there are ends of jobs that are to be told."""
        return bool(self._due or self._tasks)

    @property
    def is_behind(self) -> bool:
        """Whether there are more ends to be told than another run is handed."""
        # Asked only then: elsewhere a release before this one does the same.
        return self._due_bytes > CARRIED_BYTES and patched(BEHIND)

    def ended(self, outcome: JobOutcome) -> None:
        """A job has ended for good."""
        if self.order is None:
            return
        status = outcome.status.value
        self._counts[status] = self._counts.get(status, 0) + 1
        self._tokens += outcome.usage.total
        self._cost_usd = round(self._cost_usd + outcome.cost_usd, 9)
        if FinishEvent.JOB in self.order.events:
            self._due.append(outcome)
            self._due_bytes += _size(outcome)

    def begin(self) -> None:
        """Tell of as many ends as may be told at a time."""
        while self._due and len(self._tasks) < AT_A_TIME:
            outcome = self._due.popleft()
            self._due_bytes -= _size(outcome)
            task = asyncio.create_task(self._tell_job(outcome))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    @property
    def may_begin(self) -> bool:
        """Whether ``begin`` would do something."""
        return bool(self._due) and len(self._tasks) < AT_A_TIME

    async def batch_ended(self, lost: Collection[str]) -> None:
        """Tell that no job is left, after all that the jobs' own ends were told; and which jobs
        were ``lost``, so that the batch fails.
        """
        if self.order is None or FinishEvent.BATCH not in self.order.events:
            return
        if not self._counts and not (lost and patched(LOST_TOLD)):
            return
        succeeded = not lost and set(self._counts) <= {JobStatus.SUCCEEDED.value}
        await self._tell(
            FinishEvent.BATCH,
            "",
            {
                "status": "succeeded" if succeeded else "failed",
                "reason": "; ".join(lost),
                "jobs": sum(self._counts.values()),
                "statuses": dict(sorted(self._counts.items())),
                "tokens": self._tokens,
                "cost_usd": self._cost_usd,
            },
        )

    async def _tell_job(self, outcome: JobOutcome) -> None:
        await self._tell(
            FinishEvent.JOB,
            outcome.run,
            {
                "status": outcome.status.value,
                "reason": outcome.reason,
                "turns": outcome.turns,
                "tokens": outcome.usage.total,
                "cost_usd": outcome.cost_usd,
                "score": outcome.score,
            },
            outcome,
        )

    async def _tell(
        self,
        event: FinishEvent,
        run: str,
        told: dict[str, object],
        outcome: JobOutcome | None = None,
    ) -> None:
        order = self.order
        if order is None:
            return
        # Before the wait: activity ids have the number, and several ends are told at a time.
        self._number += 1
        if self._deaf:
            brief = min(order.timeout, BRIEF_SECONDS)
            order = order.model_copy(update={"timeout": brief})
        tries = 1 if self._deaf else TRIES
        who = outcome.key.job if outcome is not None else ""
        first = workflow.info().first_execution_run_id
        notice = FinishNotice(
            order=order,
            event=event,
            key=f"{self._batch}/{who}/{run or f'{first}.{self._number}'}",
            batch=self._batch,
            job=outcome.key if outcome is not None else None,
            run=run,
            told=told,
            last=tries,
        )
        try:
            answer: FinishTold = await result_of(
                "tell_finish",
                notice,
                FinishTold,
                id=f"told-{self._number}",
                limit=timedelta(seconds=order.timeout) + SLACK,
                summary=f"tell of the end of {who or 'the batch'}",
                **by_role(self.routes, Role.TOOLS, self._batch),
                tries=RetryPolicy(
                    initial_interval=_PAUSES.initial_interval,
                    maximum_interval=_PAUSES.maximum_interval,
                    maximum_attempts=tries,
                ),
            )
        except ActivityError as error:
            # A cancel is the batch's, not the receiver's silence.
            if is_cancelled_exception(error):
                raise
            self._deaf = True
        else:
            # A refusal before the last try is an answer: who gives one is no dead receiver.
            if answer.heard:
                self._deaf = False
            elif answer.tries >= tries:
                self._deaf = True


def _size(outcome: JobOutcome) -> int:
    return len(outcome.model_dump_json())
