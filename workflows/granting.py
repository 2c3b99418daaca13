"""A batch's side of its budget: each job begins with a slice, and is told when it is granted
another (``runtime/job/purse.py``).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

from temporalio import workflow
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from runtime.base.spec.models import Amount, BatchBudget
    from runtime.base.values import JobKey
    from runtime.base.workflow_ids import is_nameable, job_workflow_id
    from runtime.job.purse import NOTHING, Ask, Granted, Purse, plus
    from workflows.messages import CarriedPurse, JobOrder, JobOutcome
    from workflows.patches import patched

STRANGERS_TOLD = "unknown-jobs-are-told"
"""The patch since which a batch answers jobs that it does not hold."""

_RUN = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""What the server takes for the id of a run."""

NOT_HELD = "the run of the batch that granted the job what it may spend has ended"


class Granting:
    """What the jobs of one batch are granted of its budget, if it has one.

    ``soon`` has something done before the run ends.
    """

    def __init__(
        self,
        batch: str,
        carried: CarriedPurse | None,
        soon: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._batch, self._soon = batch, soon
        self._began = carried.began if carried is not None else workflow.time()
        self._until = carried.until if carried is not None else ""
        self._purse = Purse.restored(carried.purse) if carried is not None else None

    @property
    def carried(self) -> CarriedPurse | None:
        """For the batch's next run."""
        if self._purse is None:
            return None
        return CarriedPurse(began=self._began, until=self._until, purse=self._purse.saved())

    def take(self, budget: BatchBudget | None, places: int, spent: Amount | None) -> None:
        """What the jobs may spend together from now on, and what they had ``spent`` of it before
        the batch began.
        """
        if budget is None:
            return
        amount = Amount(turns=budget.turns, tokens=budget.tokens, usd=budget.usd)
        if self._purse is None:
            self._purse = Purse(amount, places, spent or NOTHING)
        self._purse.budget, self._purse.places = amount, places
        if budget.wall_seconds is not None:
            self._until = datetime.fromtimestamp(self._began + budget.wall_seconds, UTC).isoformat()
        # What others left, or a larger budget, may be what some job is waiting for.
        self._answer()

    def may_start(self, *, others: bool) -> bool:
        """Whether there is something to spend for another job.

        Where there are no ``others`` that might leave something, the next is started, to end at
        once.
        """
        return self._purse is None or not others or not self._purse.is_empty

    def with_slice(self, job: JobOrder) -> JobOrder:
        """The order with the job's first slice, and the batch's time."""
        job = job.model_copy(update={"until": self._until}) if self._until else job
        if self._purse is None or job.withdrawn:
            return job
        own = job.spec.budget
        most = Amount(turns=own.turns, tokens=own.tokens, usd=own.usd)
        slice = self._purse.first(job.key.job, most)
        refused = "" if slice is not None else self._purse.reason()
        return job.model_copy(update={"granted": slice or NOTHING, "refused": refused})

    def ask(self, ask: Ask) -> None:
        """A job wants more. One that the batch does not hold, such as one that was reset after an
        earlier run of the batch had ended, is told that there is nothing for it.
        """
        if self._purse is not None:
            self._purse.ask(ask)
            self._answer()
        held = self._purse is not None and ask.job in self._purse.held
        key = JobKey(batch=self._batch, job=ask.job)
        # The server fails the task that would tell one which cannot be, and so each one after it.
        may_be = is_nameable(key) and (not ask.run or _RUN.fullmatch(ask.run))
        if not held and may_be and patched(STRANGERS_TOLD):
            # Its run alone: a later one of the same name may be held by then.
            self._soon(self._tell(key, Granted(reason=NOT_HELD, ask=ask.id), run=ask.run))

    def ended(self, name: str, outcome: JobOutcome | None) -> None:
        """A job has ended; what it did not spend is there for others."""
        if self._purse is None:
            return
        spent = None
        # Of one that was taken back, all that it was granted counts: what it spent before is in no
        # figure of its own.
        if outcome is not None and not outcome.taken_back:
            tokens, usd = max(outcome.usage.total, 0), max(outcome.cost_usd, 0.0)
            spent = plus(
                Amount(turns=outcome.turns, tokens=tokens, usd=usd), outcome.lent or NOTHING
            )
        self._purse.ended(name, spent)
        self._answer()

    def _answer(self) -> None:
        if self._purse is not None:
            for name, granted in self._purse.settle().items():
                self._soon(self._tell(JobKey(batch=self._batch, job=name), granted))

    async def _tell(self, key: JobKey, granted: Granted, *, run: str = "") -> None:
        """Tell a job; what is granted to one that has ended comes back with its end."""
        job = workflow.get_external_workflow_handle(job_workflow_id(key), run_id=run or None)
        # The job may have ended meanwhile.
        with contextlib.suppress(FailureError):
            await job.signal("grant", granted)
