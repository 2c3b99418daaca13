"""A job's condensations: when one is due, what the configured condenser makes of it, and what is
told of it.

A condenser that wants a summary written cannot go on by itself: then ``waiting`` is the request,
and the job's prompt cannot be made before ``summarised`` was given the reply, or why there is none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from runtime.base.spec.models import CondenserSpec, ModelSettings
from runtime.base.values import ModelReply, StepRef, Usage, Value
from runtime.history.condensers import (
    Ask,
    Condenser,
    Forget,
    GiveUp,
    HardReset,
    Keep,
    Limits,
    NoCondenser,
    Outcome,
    Pipeline,
    Situation,
    SummaryReply,
    SummaryRequest,
    Trigger,
    fault_of,
    plan,
    triggers_of,
)
from runtime.history.condensers.kinds import KINDS
from runtime.history.events import (
    ActionEvent,
    Condensation,
    MessageEvent,
    MessageSource,
    RepairReason,
    ShownEvent,
)
from runtime.history.view import View
from runtime.job.condensed import CondensationOutcome
from runtime.job.desk import Desk
from runtime.job.dropped import Dropped
from runtime.job.summary_prompt import summary_delta
from runtime.projection.project import tokens_of
from runtime.projection.segments import LayoutDelta

WINDOW_EXCEEDED = "ContextWindowExceeded"
"""The type of the error of a call whose prompt was too long."""

NOTHING = Usage()
FIRST_PAUSE, LONGEST_PAUSE = 4, 64
"""Turns for which no summary is asked for after one that no model wrote, and after many."""


@dataclass(frozen=True)
class SummaryTask:
    """A summary to be written by a model.

    ``name`` is unique in the job; ``delta`` makes its prompt from the last step's.

    ``model`` is None for the job's own.
    """

    name: str
    request: SummaryRequest
    delta: LayoutDelta
    model: ModelSettings | None


@dataclass(frozen=True)
class _Writing:
    """A condensation whose summary is being written: the requests so far, and what they cost."""

    situation: Situation
    task: SummaryTask
    number: int
    usage: Usage = NOTHING
    cost_usd: float = 0.0


class Backoff(Value):
    """How many summaries in a row no model wrote, and the turn before which none is asked for."""

    failures: int = 0
    until: int = 0

    def failed(self, turn: int) -> Backoff:
        """One more has failed, at ``turn``."""
        return Backoff(
            failures=self.failures + 1,
            # The shift is bounded too: the count of failures grows for as long as a model is out of
            # reach.
            until=turn + min(FIRST_PAUSE << min(self.failures, 8), LONGEST_PAUSE),
        )


class SavedCondensing(Value):
    """What a checkpoint has of a job's condensations."""

    cached_tokens: int = 0
    dropped: Dropped = Dropped()
    backoff: Backoff = Backoff()


class Condensing:
    """The condensations of one job.

    ``taken`` are those since the last step, ``dropped`` is what no summary stands for.
    """

    def __init__(self, specs: tuple[CondenserSpec, ...]) -> None:
        self.never = not specs
        self.taken: tuple[CondensationOutcome, ...] = ()
        self.cached_tokens = 0
        self.dropped = Dropped()
        self.backoff = Backoff()
        self._condenser = condenser_of(specs)
        self._limits = [spec.max_size for spec in specs if spec.max_size is not None]
        self._model = next((spec.model for spec in specs if spec.model is not None), None)
        self._writing: _Writing | None = None
        self._number = 0

    # Between two turns nothing is being written, and what was taken is archived.
    MADE_ANEW: ClassVar[frozenset[str]] = frozenset(
        {"never", "taken", "_condenser", "_limits", "_model", "_writing", "_number"}
    )

    def saved(self) -> SavedCondensing:
        """For a checkpoint."""
        return SavedCondensing(
            cached_tokens=self.cached_tokens, dropped=self.dropped, backoff=self.backoff
        )

    def restore(self, saved: SavedCondensing) -> None:
        """As it was saved."""
        self.cached_tokens, self.dropped, self.backoff = (
            saved.cached_tokens,
            saved.dropped,
            saved.backoff,
        )

    @property
    def waiting(self) -> SummaryTask | None:
        """The summary that must be written before the prompt can be made."""
        return self._writing.task if self._writing is not None else None

    def begin_turn(self) -> None:
        """Count this turn's condensations from 1."""
        self._number = 0

    def called(self, usage: Usage) -> None:
        """The step of a model call holds what was taken until now.

        ``usage`` says what of its prompt is in a cache.
        """
        self.taken = ()
        self.cached_tokens = usage.cache_read + usage.cache_write

    def due(
        self, desk: Desk, prompt_tokens: int, window: int, *, refused: bool
    ) -> bool | SummaryTask:
        """Condense if something asks for it: events, tokens, a request, or a provider's refusal.

        What the model has not been shown yet stays. False if nothing came of it.
        """
        limits = Limits(max_events=min(self._limits, default=None), max_tokens=window)
        triggers = triggers_of(desk.log.view, limits, prompt_tokens, window_error=refused)
        if not triggers:
            return False
        situation = self._situation(
            desk, prompt_tokens, window, triggers, unseen_from=unseen_from(desk.log.view)
        )
        return self._carry_out(desk, situation, plan(desk.log, self._condenser, situation))

    def reset(self, desk: Desk, prompt_tokens: int, window: int) -> bool | SummaryTask:
        """Forget all that the model has been shown already, whatever the condenser would keep."""
        situation = self._forced(desk, prompt_tokens, window, unseen_from(desk.log.view))
        return self._carry_out(desk, situation, HardReset().condense(desk.log.view, situation))

    def last_resort(self, desk: Desk, prompt_tokens: int, window: int) -> bool | SummaryTask:
        """Forget what the model has not been shown, too: one endless tool loop, a result larger
        than the window.
        """
        situation = self._forced(desk, prompt_tokens, window, None)
        outcome = plan(desk.log, self._condenser, situation)
        if isinstance(outcome, GiveUp):
            outcome = HardReset().condense(desk.log.view, situation)
        return self._carry_out(desk, situation, outcome)

    def summarised(self, desk: Desk, reply: ModelReply | str, step: StepRef | None = None) -> None:
        """Go on with the reply to the request that waited, or with why there is none."""
        writing = self._writing
        if writing is None:
            raise RuntimeError("no summary was asked for")
        # First, since what follows may ask once more, which sets it again.
        self._writing = None
        situation, request = writing.situation, writing.task.request
        answer = SummaryReply(failure=reply) if isinstance(reply, str) else _answer(writing, reply)
        if isinstance(reply, ModelReply):
            writing = replace(
                writing,
                usage=writing.usage + reply.usage,
                cost_usd=writing.cost_usd + reply.cost_usd,
            )
        outcome = self._condenser.resume(desk.log.view, situation, request, answer)
        if (
            isinstance(outcome, Ask)
            and isinstance(reply, str)
            and not reply.startswith(WINDOW_EXCEEDED)
        ):
            # Nobody writes it now; only where the prompt was too long, a smaller one may help.
            outcome = self._unasked(desk, situation, outcome, reply)
        if isinstance(outcome, Ask):
            self._ask(desk, situation, outcome.request, replace(writing, number=writing.number + 1))
            return
        fault = answer.failure or fault_of(answer.text, request, situation)
        # Counted where no model answered; a useless answer is not asked for less often.
        self.backoff = self.backoff.failed(desk.turn) if isinstance(reply, str) else Backoff()
        self._carry_out(
            desk,
            situation,
            outcome,
            summary=None if fault else step,
            failures=(*request.failures, fault) if fault else request.failures,
            usage=writing.usage,
            cost_usd=round(writing.cost_usd, 9),
        )

    def _carry_out(
        self, desk: Desk, situation: Situation, outcome: Outcome, **details: Any
    ) -> bool | SummaryTask:
        match outcome:
            case Keep() | GiveUp():
                return False
            # In turns, not in time: a replay has to come to the same.
            case Ask() if desk.turn < self.backoff.until:
                words = f"not asked for before turn {self.backoff.until}, since summaries failed"
                given_up = self._unasked(desk, situation, outcome, words)
                return self._carry_out(desk, situation, given_up, failures=(words,), **details)
            case Ask(request=request):
                return self._ask(desk, situation, request, None)
            case Forget(condensation=condensation):
                return self._forget(desk, condensation, details)

    def _unasked(
        self, desk: Desk, situation: Situation, asked: Ask, words: str
    ) -> Keep | GiveUp | Forget:
        """What the condenser does without the summary that it asks for."""
        outcome: Outcome = asked
        while isinstance(outcome, Ask):
            outcome = self._condenser.resume(
                desk.log.view, situation, outcome.request, SummaryReply(failure=words)
            )
        return outcome

    def _ask(
        self, desk: Desk, situation: Situation, request: SummaryRequest, before: _Writing | None
    ) -> SummaryTask:
        number = before.number if before is not None else 1
        name = request.condensation_id if number == 1 else f"{request.condensation_id}-{number}"
        delta = summary_delta(desk, request, situation)
        task = SummaryTask(name=name, request=request, delta=delta, model=self._model)
        usage, cost = (before.usage, before.cost_usd) if before is not None else (Usage(), 0.0)
        self._writing = _Writing(situation, task, number, usage, cost)
        return task

    def _forget(self, desk: Desk, condensation: Condensation, details: dict[str, Any]) -> bool:
        view = desk.log.view
        # Before the append, which takes events out of the View.
        before = {event.id: event for event in view}
        # Counted even if nothing comes of it: its id stands in the log, and the next needs another.
        self._number += 1
        repairs = desk.log.append(condensation)
        forgotten = tuple(event_id for event_id in before if view.position(event_id) is None)
        # The View's properties may have kept all that was named: then nothing took effect.
        if not forgotten:
            return False
        stands_in = condensation.summary_event_id if condensation.summary is not None else None
        if stands_in is None:
            self.dropped = self.dropped.more(before[event_id] for event_id in forgotten)
        made = CondensationOutcome(
            id=condensation.id,
            condenser=condensation.condenser,
            reason=condensation.reason.partition(";")[0],
            forgotten=forgotten,
            unknown=tuple(
                i for r in repairs if r.reason is RepairReason.UNKNOWN_IGNORED for i in r.event_ids
            ),
            stands_in=stands_in,
            **details,
        )
        self.taken = (*self.taken, made)
        return True

    def _forced(self, desk: Desk, prompt_tokens: int, window: int, unseen: int | None) -> Situation:
        triggers = frozenset({Trigger.TOKENS, Trigger.WINDOW})
        return self._situation(desk, prompt_tokens, window, triggers, unseen_from=unseen)

    def _situation(
        self,
        desk: Desk,
        prompt_tokens: int,
        window: int,
        triggers: frozenset[Trigger],
        *,
        unseen_from: int | None,
    ) -> Situation:
        def count(event: ShownEvent) -> int:
            if (
                isinstance(event, ActionEvent)
                and event.tool_calls
                and event.tool_call_id != event.tool_calls[0].id
            ):
                # A reply with several calls is one segment, which counts with its first action.
                return 0
            return tokens_of(desk.projector.told(event, desk.replies))

        view = desk.log.view
        return Situation(
            condensation_id=f"{desk.turn}.c{self._number + 1}",
            turn=desk.turn,
            triggers=triggers,
            count=count,
            prompt_tokens=prompt_tokens,
            window=window,
            # What was forgotten in this turn has broken the prefix that the provider's cache held.
            cached_tokens=0 if self.taken else self.cached_tokens,
            fixed_tokens=prompt_tokens
            - sum(count(event) for event in view if not view.protects(event)),
            unseen_from=unseen_from,
        )


def condenser_of(specs: tuple[CondenserSpec, ...]) -> Condenser:
    """The condenser that a job's definition asks for."""
    condensers = [KINDS[spec.kind].make(spec) for spec in specs]
    if not condensers:
        return NoCondenser()
    return condensers[0] if len(condensers) == 1 else Pipeline(tuple(condensers))


def unseen_from(view: View) -> int:
    """The View's position from which the model has not been shown the events: the last reply, and
    what came after it.
    """
    # From the back: the last reply stands near the end, however long the View is.
    start = len(view)
    response: str | None = None
    while start > 0:
        event = view[start - 1]
        if isinstance(event, ActionEvent):
            if response not in (None, event.llm_response_id):
                break
            response = event.llm_response_id
        elif response is not None:
            break
        start -= 1
        # A text without a statement is a whole reply: what stands before it was shown.
        if isinstance(event, MessageEvent) and event.source is MessageSource.AGENT:
            break
    return start


def _answer(writing: _Writing, reply: ModelReply) -> SummaryReply:
    return SummaryReply(
        text=reply.text, llm_response_id=f"summary-{writing.task.name}:{reply.response_id}"
    )
