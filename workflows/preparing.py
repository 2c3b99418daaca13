"""Background work in Temporal: activities that nobody awaits (docs/design.md section 3).

The history holds the order in which they end, so a replay queues the same payloads in the same
order. They are not taken along into another run: what had not ended there is begun anew.
"""

from __future__ import annotations

import asyncio
import functools

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from activities.contracts import CutCall, ReadBatchResult
    from runtime.base.values import Failed
    from runtime.context.payloads import Preparation
    from workflows.cutting import CUT_BOOKED, Cuts, was_cut
    from workflows.effects import Effects
    from workflows.failing import failed_in
    from workflows.moment import Moment, one_event
    from workflows.patches import NO_NEWS, patched

WAITED_FOR = "held-calls-are-waited-for"
"""The patch since which what is short waits for the calls that hold a part of the budget."""

FAILURES_TOLD = "failed-summaries-are-told"
"""The patch since which a node says that its summary failed."""


class Preparing:
    """The preparations of one run that have not ended."""

    def __init__(self, moment: Moment, effects: Effects, cuts: Cuts) -> None:
        self._moment = moment
        self._effects = effects
        self._cuts = cuts
        self._handles: dict[str, workflow.ActivityHandle[ReadBatchResult]] = {}
        self._calls: dict[str, CutCall] = {}
        self._arrived: list[tuple[str, ReadBatchResult | Failed, CutCall | None]] = []

    @property
    def arrived(self) -> bool:
        """Whether something has ended that no look has seen."""
        return bool(self._arrived)

    async def apply(self, now: float) -> None:
        """The first part of a tick: what is ready, or what was when the record was made that is
        followed.
        """
        # Where the record answers, what was ready then is applied, whatever has ended here
        # meanwhile.
        job, answers = self._moment.job, self._moment.answers
        if answers.effect is None or answers.interim is None:
            job.apply_payloads(now)
            return
        interim = answers.interim
        payloads = job.recorded_payloads(interim)
        background = job.graph.background
        nodes = [obj_id for obj_id, *_ in payloads]
        requests = background.requests(nodes)
        with self._moment.ends_by_a_cancel():
            results = await self._effects.repeated(requests, job.turn, payloads)
        if patched(NO_NEWS):
            results = background.with_unread(results, nodes)
        job.repeat_payloads(results, interim, answers.read_of, now)

    async def begin(self, now: float) -> bool:
        """Start what is to be prepared for later ticks.

        Whether that waited for local activities; see ``Moment``.
        """
        # A record answers what was prepared too: nothing is to be read, or paid for, again.
        if self._moment.answers.effect is not None:
            return False
        job, waited = self._moment.job, False
        for preparation in job.graph.background.begin(
            turn=job.turn,
            now=now,
            version=job.desk.workspace,
            asleep=job.sleeping.to_prepare(job.graph),
        ):
            waited |= preparation.material is not None
            handle = await self._effects.prepare(preparation)
            self._handles[preparation.payload_id] = handle
            if (call := self._effects.summary_call(preparation)) is not None:
                self._calls[preparation.payload_id] = call
            handle.add_done_callback(functools.partial(self._ended, preparation))
        return waited

    def stop(self) -> None:
        """Cancel them all: the job ends."""
        for handle in self._handles.values():
            handle.cancel()
        self._handles.clear()
        self._moment.job.ledger.held.clear()

    async def released(self) -> bool:
        """Whether there is more for a call than there was, after waiting for those that nobody
        waits for elsewhere, and that hold a part of the budget.
        """
        held = self._moment.job.ledger.held
        # Asked only where something is held: elsewhere a release before this one does the same.
        if not held or not patched(WAITED_FOR):
            return False
        # All of the time: somebody worked for the job. Their own limit bounds it.
        await self._moment.after(self._ends(tuple(held)), lambda _: None)
        return True

    async def _ends(self, calls: tuple[str, ...]) -> None:
        """Wait for an event of the server, and for the ends of ``calls``: one may have ended
        without an event that a look has seen, see ``Moment``.
        """
        await one_event("for summaries")
        await workflow.wait_condition(
            lambda: not any(one in self._handles or self._cuts.asks(one) for one in calls)
        )

    async def settle(self) -> None:
        """Cancel the summaries that are being written, and book what was spent on those that were
        cut until now, and on those that no look has seen: another run knows nothing of them.
        """
        if not (self._cuts or (self._calls and patched(CUT_BOOKED))):
            return
        # Which of them have ended is known after an event of the server alone, see ``Moment``.
        await self._moment.after(one_event("before the end"), lambda _: 0.0)
        for payload_id in [one for one in self._handles if one in self._calls]:
            self._cancel(payload_id)
        if self._cuts:
            await self._moment.after(self._cuts.answered(), lambda _: 0.0)

    def _cancel(self, payload_id: str) -> None:
        self._handles.pop(payload_id).cancel()
        # Else the look after a wait that follows may name it once more.
        self._moment.job.graph.background.drop(payload_id)
        call = self._calls.pop(payload_id, None)
        if call is not None and patched(CUT_BOOKED):
            self._cuts.ask(call, Failed())
        else:
            self._moment.job.ledger.release(payload_id)

    def look(self) -> None:
        """Take what has been prepared since the last look, and cancel what has become pointless;
        see ``Moment``.
        """
        arrived, self._arrived = self._arrived, []
        job, now = self._moment.job, self._moment.now
        background = job.graph.background
        for payload_id, read, cut in arrived:
            self._calls.pop(payload_id, None)
            if isinstance(read, Failed) and cut is not None:
                self._cuts.ask(cut, read)
            else:
                job.ledger.release(payload_id)
                job.ledger.add_background(read.usage, read.cost_usd)
            if isinstance(read, Failed):
                # Before this, that a summary failed changed nothing that a model is shown.
                background.failed(payload_id, now, told=patched(FAILURES_TOLD))
            else:
                background.ready(payload_id, read.results[0], now)
        for payload_id in background.cancel():
            self._cancel(payload_id)

    def _ended(self, preparation: Preparation, task: asyncio.Task[ReadBatchResult]) -> None:
        # Asked in any case: an error that nobody has asked for is logged as one.
        error = None if task.cancelled() else task.exception()
        # One that ``look`` or ``stop`` took out was cancelled there: its result is no longer
        # wanted.
        if self._handles.pop(preparation.payload_id, None) is None or task.cancelled():
            return
        call = self._calls.get(preparation.payload_id)
        read = task.result() if error is None else failed_in(error)
        # Where nobody said what it used, that is asked.
        asked = (
            call is not None
            and isinstance(error, ActivityError)
            and was_cut(error)
            and patched(CUT_BOOKED)
        )
        self._arrived.append((preparation.payload_id, read, call if asked else None))
