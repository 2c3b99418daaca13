"""The model call of a turn: its prompt, and the model's reply to it; another prompt where the first
comes to nothing for its length, and the same one again where the batch grants what was short.
"""

from __future__ import annotations

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

with workflow.unsafe.imports_passed_through():
    from activities.contracts import BUDGET_SHORT, TurnReply
    from runtime.base.spec.models import Amount
    from runtime.base.values import Failed
    from runtime.job.condensing import WINDOW_EXCEEDED, SummaryTask
    from runtime.job.job import Job, Prompt
    from runtime.job.phases import Phase
    from runtime.job.stops import JobFailed
    from workflows.asking import Asking
    from workflows.failing import has_room
    from workflows.moment import Moment
    from workflows.patches import CENTS, patched
    from workflows.preparing import Preparing
    from workflows.replaying import Replaying
    from workflows.slices import Slices
    from workflows.visible import Visible

DOUBT = "prompt-may-be-too-long"
"""The patch since which a call is made again, with a smaller prompt, after errors that may mean
that it was too long.
"""


class Prompting:
    """The prompts of one job's turns, and the replies to them."""

    def __init__(
        self,
        moment: Moment,
        replaying: Replaying,
        asking: Asking,
        slices: Slices,
        preparing: Preparing,
        visible: Visible,
    ) -> None:
        self._moment = moment
        self._replaying = replaying
        self._asking = asking
        self._slices = slices
        self._preparing = preparing
        self._visible = visible

    @property
    def _job(self) -> Job:
        return self._moment.job

    async def call_model(self) -> TurnReply:
        """Project and call; the model's reply.

        A prompt that the provider finds too long is projected smaller, never the end of a job.

        One that may have been too long, by an error that does not say so, is projected smaller once
        a turn.
        """
        doubted: ActivityError | None = None
        # What had failed of the turn before this prompt: 'retry' bounds attempts at one.
        before = self._job.ledger.failed
        while True:
            try:
                # Inside the loop: after a refusal the prompt is another one.
                prompt = await self._project()
            except JobFailed:
                if doubted is not None:
                    raise doubted from doubted.cause  # which `from None` would take away
                raise
            if (limit := self._moment.answers.limit(len(self._job.limits))) is not None:
                self._job.limited(limit)
                continue
            if (restored := self._moment.answers.restored) is not None:
                return self._called(prompt, restored)
            self._visible.phase = Phase.MODEL
            accepted = self._job.fitter.accepted if doubted is None else 0
            told = self._replaying.told_in(prompt.execution)
            tried = self._job.ledger.failed.since(before)
            sent = self._job.ledger.granted
            try:
                reply = await self._asking.reply(prompt, told, accepted, tried)
            except ActivityError as error:
                cause = error.cause
                if await self._granted_more(cause, sent, self._job.ledger.failed.since(before)):
                    continue
                before = self._job.ledger.failed
                if isinstance(cause, ApplicationError) and cause.type == WINDOW_EXCEEDED:
                    self._job.refused(cause.message)
                    continue
                if doubted is None and self._may_be_too_long(cause):
                    doubted = error
                    continue
                raise
            # Only now: the step holds the divergences that the call carried, not one that was never
            # made.
            self._replaying.archived()
            return self._called(prompt, reply)

    async def _granted_more(
        self, cause: BaseException | None, sent: Amount | None, tried: Failed
    ) -> bool:
        """Whether the call was not made, or not again, since its job's slice of the batch's budget
        does not hold it, and the job has another now; as ``Slices.wanted`` and ``another``.
        """
        if not isinstance(cause, ApplicationError):
            return False
        if cause.type == BUDGET_SHORT and await self._preparing.released():
            # Summaries that are written in the background held what was short.
            return True
        if (wanted := await self._slices.wanted(cause, tried)) is None:
            return False
        self._visible.phase = Phase.GRANT
        return await self._slices.another(wanted, sent)

    def _may_be_too_long(self, cause: BaseException | None) -> bool:
        """Whether the prompt may have been too long by an error that does not say so; then the next
        one is smaller.
        """
        limit = (
            self._job.fitter.doubted(cause.type or "")
            if isinstance(cause, ApplicationError) and not has_room(cause)
            else None
        )
        # Asked only where there is a doubt: elsewhere a release before this one does the same.
        if limit is None or not patched(DOUBT):
            return False
        self._job.limited(limit)
        return True

    def _called(self, prompt: Prompt, reply: TurnReply) -> TurnReply:
        """Take the reply, and its step as the one that the next follows."""
        self._moment.called(reply.step, own=self._moment.answers.restored is None)
        self._job.called(prompt, reply)
        if (restored := self._moment.answers.shown) is not None:
            # The prompt that was sent is the one that the next is told by; this one's budget line
            # is another.
            self._job.desk.shown = restored
        return reply

    async def _project(self) -> Prompt:
        """This turn's prompt, after the summaries without which it would not fit.

        Between ``begin_call`` and the call itself nothing is waited for: a reset to before the call
        finds its orders there.
        """
        while True:
            if await self._replaying.begin_call():
                self._job.check_budget(self._moment.now)
            made = self._job.project(self._moment.now, cents=patched(CENTS))
            if not isinstance(made, SummaryTask):
                return made
            self._visible.phase = Phase.CONDENSING
            await self._asking.summarise(made)
            self._job.check_budget(self._moment.now)
