"""Model calls that a cancel or a deadline cut short: what was sent is paid for, and so booked."""

from __future__ import annotations

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, CancelledError, TimeoutError

with workflow.unsafe.imports_passed_through():
    from activities.contracts import CutCall
    from runtime.base.values import Failed
from workflows.calling import result_of
from workflows.limits import RECORD_TRIES
from workflows.moment import Moment

CUT_BOOKED = "cut-calls-are-booked"
"""The patch since which a job asks what calls have used that were cut, and books it; what they hold
of the budget is held until then, and no run ends before that.
"""


def was_cut(error: ActivityError) -> bool:
    """Whether a call ended without a word of what it used."""
    return isinstance(error.cause, CancelledError | TimeoutError)


class Cuts:
    """The calls of one run that were cut, each until what it used is booked."""

    def __init__(self, moment: Moment) -> None:
        self._moment = moment
        self._asked: dict[str, asyncio.Task[Failed]] = {}

    def __bool__(self) -> bool:
        """Whether there is one."""
        return bool(self._asked)

    def asks(self, activity: str) -> bool:
        """Whether it is yet to be told what the call of ``activity`` used."""
        return activity in self._asked and not self._asked[activity].done()

    def ask(self, cut: CutCall, told: Failed) -> asyncio.Task[Failed]:
        """Ask what a call used, of which its error ``told``; the look that sees the answer books it
        and ends what the call held of the budget.
        """
        asked = self._asked[cut.activity] = asyncio.ensure_future(spent_on(cut, told))
        return asked

    async def spent(self, cut: CutCall, told: Failed) -> Failed:
        """What a call used, for the one who books it."""
        if self._moment.cancelled:
            # Raised below, before it is waited for: a look before the job's end books it.
            self.ask(cut, told)
        return await self._moment.after(self._spent(cut, told), lambda spent: spent.seconds)

    async def _spent(self, cut: CutCall, told: Failed) -> Failed:
        # Shielded: of a job that is cancelled meanwhile, a look before its end books it.
        spent = await asyncio.shield(self.ask(cut, told))
        del self._asked[cut.activity]
        return spent

    async def answered(self) -> None:
        """Wait until all can be booked."""
        await workflow.wait_condition(lambda: not any(map(self.asks, self._asked)))

    def look(self) -> None:
        """Book what has been answered since the last look; see ``Moment``."""
        ledger = self._moment.job.ledger
        for activity in [name for name, asked in self._asked.items() if asked.done()]:
            spent = self._asked.pop(activity).result()
            ledger.release(activity)
            ledger.add_background(spent.usage, spent.cost_usd)


async def spent_on(cut: CutCall, told: Failed) -> Failed:
    """What a call used that was cut; what its error ``told``, if the archive cannot say."""
    try:
        return await result_of(
            "settle_call",
            cut,
            Failed,
            id=f"settle-{cut.activity}",
            summary=f"what was spent on {cut.activity}",
            tries=RECORD_TRIES,
        )
    except ActivityError:
        return told
