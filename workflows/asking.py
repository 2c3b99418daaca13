"""Asking models, for a job's turns and for its summaries: each call is one activity, which archives
both sides of it; what comes to nothing is booked.
"""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.contracts import CutCall, SummaryCall, TurnCall, TurnReply
    from runtime.base.spec.models import ModelSettings
    from runtime.base.values import Failed
    from runtime.job.condensing import SummaryTask
    from runtime.job.job import NONE_FAILED, Job, Prompt
    from workflows.calling import result_of
    from workflows.cutting import CUT_BOOKED, Cuts, was_cut
    from workflows.failing import cause_of, failed_in
    from workflows.limits import CALL_LIMIT, SUMMARY_LIMIT, sooner, summary_retry
    from workflows.messages import JobOrder
    from workflows.moment import Moment
    from workflows.patches import patched
    from workflows.routing import Routing
    from workflows.visible import turn_line


class Asking:
    """The model calls of one job that it waits for."""

    def __init__(self, order: JobOrder, moment: Moment, routing: Routing, cuts: Cuts) -> None:
        self._order, self._moment = order, moment
        self._routing, self._cuts = routing, cuts

    @property
    def _job(self) -> Job:
        return self._moment.job

    async def reply(
        self, prompt: Prompt, execution: dict[str, Any] | None, accepted: int, tried: Failed
    ) -> TurnReply:
        """The reply of the turn's model to a prompt; ``execution`` is what the step tells of the
        last statement.

        A prompt of ``accepted`` tokens is known to fit, this one has been ``tried`` with earlier
        slices of the batch's budget.

        Raises:
            ActivityError: if there is none. What the attempts at it used is booked then.
        """
        call = TurnCall(
            **self._fields(),
            layout=prompt.delta,
            model=self._model(),
            retry=self._order.spec.retry,
            execution=execution,
            nodes=prompt.nodes,
            condensations=prompt.condensations,
            events=prompt.events,
            interim=prompt.interim,
            given=self._moment.answers.reply_from,
            moved=prompt.moved,
            booked=self._job.ledger.failed,
            tried=tried,
            accepted=accepted,
            through=self._moment.through,
            workspace=self._job.desk.workspace,
        )
        name = f"turn-{call.turn}{prompt.suffix}"
        asked = result_of(
            "call_model",
            call,
            TurnReply,
            id=name,
            limit=CALL_LIMIT,
            until=self._moment.until_deadline(),
            summary=turn_line(call.turn, self._job.last_statement),
            **self._routing.of_model(call.model, recorded=call.given is not None),
        )
        try:
            reply: TurnReply = await self._moment.after(
                asked,
                lambda reply: _worked(reply, call.booked),
                lambda error: failed_in(error).seconds - call.booked.seconds,
            )
        except ActivityError as error:
            # First, whatever comes of it: those attempts were paid for.
            self._job.ledger.add_failed(await self._spent_in(error, call, name))
            raise
        return reply

    async def summarise(self, task: SummaryTask) -> None:
        """Have a summary written.

        That there is none is an answer too: the condenser goes on without it.
        """
        job, moment = self._job, self._moment
        if (recorded := await moment.answers.summary(task.name, job.turn)) is not None:
            job.summarised(recorded, recorded.step if isinstance(recorded, TurnReply) else None)
            return
        call = SummaryCall(
            **self._fields(),
            name=task.name,
            layout=task.delta,
            prompt=task.request.form,
            model=self._model(task.model),
            retry=summary_retry(self._order.spec.retry),
        )
        name = f"summary-{task.name}"
        made = result_of(
            "summarise",
            call,
            TurnReply,
            id=name,
            limit=CALL_LIMIT,
            until=sooner(SUMMARY_LIMIT, moment.until_deadline()),
            summary=f"summary before turn {job.turn}",
            **self._routing.of_model(call.model),
        )
        try:
            reply: TurnReply = await moment.after(
                made, _worked, lambda error: failed_in(error).seconds
            )
        except ActivityError as error:
            failed = failed_in(error)
            if was_cut(error) and patched(CUT_BOOKED):
                failed = await self._cuts.spent(_cut(call, name, side=task.name), failed)
            # A cancelled job's summary is no failure to go on from.
            if is_cancelled_exception(error):
                job.ledger.add_background(failed.usage, failed.cost_usd)
                raise
            job.summarised(cause_of(error), failed=failed)
        else:
            job.summarised(reply, reply.step)

    async def _spent_in(self, error: ActivityError, call: TurnCall, name: str) -> Failed:
        """What the turn's calls used that came to nothing, with this one."""
        told = failed_in(error)
        if call.given is not None or not was_cut(error) or not patched(CUT_BOOKED):
            return told
        # An error tells all attempts of the turn, if any.
        own = told.since(call.booked) if told.attempts > call.booked.attempts else Failed()
        return call.booked + await self._cuts.spent(_cut(call, name), own)

    def _fields(self) -> dict[str, Any]:
        """What each model call of the turn has in common."""
        spec = self._order.spec
        return {
            "key": self._order.key,
            "turn": self._job.turn,
            "parent": self._moment.parent,
            "form": spec.form,
            "encoding": spec.encoding,
            "redact": spec.redact,
            "reset_event_id": workflow.info().get_current_history_length() + 1,
            "left": self._moment.left(),
        }

    def _model(self, other: ModelSettings | None = None) -> dict[str, Any]:
        """What litellm is called with: the job's model, or the one that writes its summaries."""
        if other is None and (ordered := self._moment.answers.model) is not None:
            return ordered
        settings = other or self._order.spec.model
        return {"name": settings.name, **settings.options}


def _cut(call: TurnCall | SummaryCall, name: str, side: str = "") -> CutCall:
    return CutCall(key=call.key, turn=call.turn, activity=name, model=call.model, side=side)


def _worked(reply: TurnReply, booked: Failed = NONE_FAILED) -> float | None:
    """Seconds that were worked for a model's reply, with the attempts that failed after those that
    are ``booked``.
    """
    return None if reply.worked is None else reply.worked + reply.failed.seconds - booked.seconds
