"""A job's side of its batch's budget: it asks for slices, and goes on when it has one.

It asks before it needs one, and goes on meanwhile; only where what it has holds no call, it waits.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError

with workflow.unsafe.imports_passed_through():
    from activities.contracts import BUDGET_SHORT, BUDGET_SPENT
    from runtime.base.plurals import counted
    from runtime.base.spec.models import Amount
    from runtime.base.values import Failed
    from runtime.base.workflow_ids import batch_workflow_id
    from runtime.job.ledger import Ledger
    from runtime.job.purse import NOTHING, Ask, Granted
    from runtime.job.stops import Cause, JobFailed
    from workflows.failing import waits_too_long, wanted_by
    from workflows.limits import sooner
    from workflows.messages import JobOrder
    from workflows.moment import Moment, arrival
    from workflows.patches import FREED, IN_VAIN, patched

ASKED_AGAIN = "slice-asked-again"
"""The patch since which a job asks again for a slice of which it has heard nothing for long."""

NAMED = "wishes-are-named"
"""The patch since which an answer says which wish it answers."""

ASKS_AGAIN = timedelta(minutes=15)
"""Then: a batch whose worker is of an older release may have dropped what it could not read."""

CAME_MEANWHILE = "slice-came-meanwhile"
"""The patch since which a call for which a slice was short is made again where another slice came
while it was under way.
"""

SLICE_SPENT = "slice-spent-on-failures"
"""The patch since which a call whose failed attempts used up its job's slice of the batch's budget
is made again, where another slice is granted.
"""

LEAST_CALL = Amount(tokens=1, usd=0.000001)
"""Less than any call needs that is made against a budget."""

GONE = "the batch that grants its jobs what they spend has ended"


class Slices:
    """What one job was granted. ``arrived`` are answers that nobody has looked at yet."""

    def __init__(self, order: JobOrder, moment: Moment) -> None:
        self._order, self._moment = order, moment
        self._asked = False
        self._heard = 0
        self._wish = order.asked
        self.arrived: list[Granted] = []

    @property
    def _ledger(self) -> Ledger:
        return self._moment.job.ledger

    def begin(self) -> None:
        """Begin with what the order says was granted."""
        self._ledger.granted, self._ledger.refused = self._order.granted, self._order.refused
        self._ledger.until = self._order.until

    def look(self) -> None:
        """Take the answers that have arrived."""
        for answer in self.arrived:
            # Others can give one again that they find in the history; batches of before name none.
            if answer.ask not in {"", self._wish}:
                continue
            self._asked, self._wish = False, ""
            self._heard += 1
            self._ledger.answered(answer, frees=patched(FREED))
        self.arrived = []

    @property
    def carried(self) -> dict[str, Any]:
        """What the order of the run that goes on says."""
        # Once more: an answer that came since the last look would be lost with the run.
        self.look()
        ledger = self._ledger
        told = {"granted": ledger.granted, "refused": ledger.refused, "until": ledger.until}
        return {**told, "asked": self._wish}

    async def ahead(self, turns: int) -> None:
        """Ask for another slice if this one comes to its end, and do not wait for it."""
        wanted = self._ledger.wants(turns)
        if wanted is not None and not self._asked:
            await self._ask(wanted, waits=False)

    def needed(self, turns: int) -> bool:
        """Whether no call can be made without another slice."""
        return self._ledger.needs(turns) is not None

    async def granted(self, turns: int, call: Amount = NOTHING) -> bool:
        """Whether what is granted holds ``call``, after waiting for another slice if need be."""
        before, moment = self._ledger.granted, self._moment
        while (wanted := self._ledger.needs(turns, call)) is not None:
            await self._ask(wanted, waits=True)
            await moment.after(self._arrival(), lambda _: 0.0)
            if self._ledger.time_left(moment.now) <= 0:
                break
        return self._ledger.granted != before

    async def wanted(self, cause: ApplicationError, tried: Failed) -> Amount | None:
        """What must be granted before the turn's call, which ended by ``cause``, can be made, or
        made again; None if that is no matter of slices. ``tried`` is what attempts at it used.

        Raises:
            JobFailed: if there were as many of them as ``retry`` allows.
            BudgetSpent: if a budget is spent after the wait for another.
        """
        if cause.type == BUDGET_SHORT:
            return wanted_by(cause)
        job, moment, retry = self._moment.job, self._moment, self._order.spec.retry
        # The attempts that failed have used up the slice, unless it is the job's own budget.
        if (
            cause.type != BUDGET_SPENT
            or self._ledger.granted is None
            or self._ledger.stop(job.turn - 1, moment.now) is not None
            or not patched(SLICE_SPENT)
        ):
            return None
        if tried.attempts >= retry.attempts or tried.seconds > retry.time:
            raise JobFailed(
                f"turn {job.turn}: {counted(tried.attempts, 'attempt')} failed, and 'retry'"
                f" allows no other; with the last slice, {cause.message}",
                Cause.PROVIDER,
            )
        if waits_too_long(cause, self._ledger, moment.now) and patched(IN_VAIN):
            return None
        if cause.next_retry_delay is not None:
            wait = sooner(cause.next_retry_delay, moment.until_deadline())
            await moment.after(workflow.sleep(wait), lambda _: None)
            job.check_budget(moment.now)
        return LEAST_CALL

    async def another(self, wanted: Amount, sent: Amount | None) -> bool:
        """Whether the job is granted more than it was when the turn's call was sent (``sent``),
        after waiting for a slice that holds what is ``wanted`` if need be.
        """
        if await self.granted(self._moment.job.turn - 1, wanted):
            return True
        # What was asked for ahead may have come while the call was under way. Asked only then:
        # elsewhere a release before this one does the same.
        return self._ledger.granted != sent and patched(CAME_MEANWHILE)

    async def _ask(self, wanted: Amount, *, waits: bool) -> None:
        self._asked = True
        if not self._wish and patched(NAMED):
            # The same in each replay; another in a run that was reset to before the wish.
            self._wish = workflow.uuid4().hex
        batch = workflow.get_external_workflow_handle(batch_workflow_id(self._order.key.batch))
        run, job = workflow.info().run_id, self._order.key.job
        ask = Ask(job=job, wanted=wanted, waits=waits, run=run, heard=self._heard, id=self._wish)
        try:
            await self._moment.after(batch.signal("ask", ask), lambda _: 0.0)
        # The batch has ended, or never was: then what the job has must do.
        except FailureError:
            self.arrived.append(Granted(reason=GONE))

    async def _arrival(self) -> None:
        """Wait for an answer, no longer than the job may last, or until it is to ask again."""
        timeout = self._moment.until_deadline()
        if patched(ASKED_AGAIN):
            timeout = sooner(ASKS_AGAIN, timeout)
        await arrival(
            # ``_asked`` falls where a look took the answer while the signal was sent.
            lambda: bool(self.arrived) or not self._asked,
            timeout,
            "waiting for a slice of the batch's budget",
        )
