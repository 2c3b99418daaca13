"""The LLM summary: a model tells what happened in the oldest stretch, and its words take the
stretch's place.

This condenser only makes requests and reads replies. A summary that is empty, failed or longer than
what it stands for is of no use: the same input is tried again a bounded number of times, then a
smaller one, and at last a deterministic extract stands in. Nothing is ever forgotten without
something in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.base.fences import fenced, one_line
from runtime.history.condensers.base import Ask, Forget, Keep, Outcome, Situation, Trigger
from runtime.history.condensers.extract import cut, event_text, extract, speaker_of
from runtime.history.condensers.hard_reset import CHARACTERS_A_TOKEN
from runtime.history.condensers.ranges import (
    Stretch,
    is_one_summary,
    stretch_between,
    stretch_near,
    stretch_to_forget,
)
from runtime.history.condensers.request import SummaryForm, SummaryReply, SummaryRequest
from runtime.history.condensers.settings import check
from runtime.history.events import Condensation, CondensationSummaryEvent, ShownEvent
from runtime.history.view import View

# What a plain token costs is 1: providers bill a cached one at about a tenth (docs/facts.md).
CACHE_READ_PRICE = 0.1
INSTRUCTION_TOKENS = 200
SMALLEST_BUDGET = 256
INSTRUCTION = """\
Write a summary of the stretch of an agent's work that is given {where}. It will stand in the \
agent's context in place of that stretch, so say all that the work needs from here on: what the \
user asked and decided, what was found out, which files and names matter and what state they are \
in, what was tried and how it ended, what is still to be done. Keep exact names, paths, numbers \
and error messages. Write at most {tokens} tokens, plain text, and nothing else."""


@dataclass(frozen=True, slots=True)
class LLMSummary:
    """Summarises the oldest stretch.

    ``input_tokens`` bounds the events that one request holds, whole; ``summary_tokens`` bounds the
    summary. Every input is tried ``attempts`` times, and made smaller ``shrinks`` times.
    """

    max_size: int = 120
    keep_first: int = 2
    input_tokens: int = 50_000
    summary_tokens: int = 1_500
    attempts: int = 2
    shrinks: int = 2

    def __post_init__(self) -> None:
        least = {
            "max_size": (self.max_size, 1),
            "keep_first": (self.keep_first, 0),
            "input_tokens": (self.input_tokens, 1),
            "summary_tokens": (self.summary_tokens, 1),
            "attempts": (self.attempts, 1),
            "shrinks": (self.shrinks, 0),
        }
        check(
            "summary",
            least=least,
            max_size=self.max_size,
            keep_first=self.keep_first,
            input_tokens=self.input_tokens,
            summary_tokens=self.summary_tokens,
        )

    def condense(self, view: View, situation: Situation) -> Outcome:
        """Ask for a summary of the oldest stretch that answers the triggers and fits the budget."""
        stretch = stretch_to_forget(
            view, situation, keep_first=self.keep_first, max_events=self.max_size
        )
        if stretch is None:
            return Keep()
        stretch = self._within_budget(view, situation, stretch)
        return Ask(self._request(situation, stretch, whole=stretch.ids))

    def resume(
        self, view: View, situation: Situation, request: SummaryRequest, reply: SummaryReply
    ) -> Outcome:
        """Use the summary, or try again, smaller, or without a model."""
        events = [view[p] for i in request.event_ids if (p := view.position(i)) is not None]
        if not events:
            return Keep()
        failure = reply.failure or fault_of(reply.text, request, situation)
        if not failure:
            return self._forget(
                situation, request.event_ids, reply.text.strip(), reply.llm_response_id
            )
        failures = (*request.failures, failure)
        if request.attempt < self.attempts:
            return Ask(
                # The same words once more: an empty or failed reply may be the provider's bad
                # moment.
                request.model_copy(update={"attempt": request.attempt + 1, "failures": failures})
            )
        smaller = self._half(view, request) if request.shrinks < self.shrinks else None
        if smaller is not None:
            again = self._request(situation, smaller, whole=request.whole_event_ids)
            return Ask(
                again.model_copy(update={"shrinks": request.shrinks + 1, "failures": failures})
            )
        # All that was to go and not the smaller input: an extract has no window that it must fit.
        whole = [view[p] for i in request.whole_event_ids if (p := view.position(i)) is not None]
        text = extract(whole, self._summary_tokens(situation) * CHARACTERS_A_TOKEN)
        return self._forget(situation, tuple(e.id for e in whole), text, None, failures)

    def _budget(self, situation: Situation) -> int:
        """How many tokens of events one request may hold: what is set, and what the model's window
        leaves for them.

        A fifth of the window is kept free, since the provider's count is not ours.
        """
        room = situation.window * 4 // 5 - INSTRUCTION_TOKENS - self._summary_tokens(situation)
        return max(min(self.input_tokens, room), SMALLEST_BUDGET)

    def _summary_tokens(self, situation: Situation) -> int:
        return min(self.summary_tokens, max(situation.window // 8, 64))

    def _within_budget(self, view: View, situation: Situation, stretch: Stretch) -> Stretch:
        """The longest part of ``stretch`` from its start whose events fit the budget; its first
        unit at least.
        """
        best: Stretch | None = None
        budget = self._budget(situation)
        passed, counted = 0, stretch.start
        for index in (i for i in view.manipulation_indices if stretch.start < i <= stretch.stop):
            # Each event is counted once, and none behind the budget: counting renders and tokenizes
            # it.
            passed += sum(situation.count(event) for event in view[counted:index])
            counted = index
            # One earlier summary alone is nothing to forget: what follows goes in, beyond the
            # budget too.
            if best is not None and passed > budget and not is_one_summary(best):
                break
            best = stretch_between(view, stretch.start, index) or best
        return best or stretch

    def _half(self, view: View, request: SummaryRequest) -> Stretch | None:
        """About the first half of the request's events; ``None`` if they are one unit."""
        positions = [p for i in request.event_ids if (p := view.position(i)) is not None]
        start, stop = positions[0], positions[-1] + 1
        smaller = stretch_near(view, start, start + (stop - start) // 2)
        return smaller if smaller is not None and smaller.stop < stop else None

    def _request(
        self, situation: Situation, stretch: Stretch, *, whole: tuple[str, ...]
    ) -> SummaryRequest:
        tokens = sum(situation.count(event) for event in stretch.events)
        form = self._form(situation, tokens)
        return SummaryRequest(
            condensation_id=situation.condensation_id,
            turn=situation.turn,
            event_ids=stretch.ids,
            whole_event_ids=whole,
            form=form,
            prompt=self._prompt(form, stretch.events, situation),
            input_tokens=tokens,
            max_summary_tokens=self._summary_tokens(situation),
        )

    def _form(self, situation: Situation, tokens: int) -> SummaryForm:
        """The agent's own prefix, if reading it from the cache is cheaper and it fits with the
        summary behind it.
        """
        # The provider's figure is of an earlier prompt and by its own count: it may be beyond ours.
        cached = min(situation.cached_tokens, situation.prompt_tokens)
        prefix_price = situation.prompt_tokens - cached + CACHE_READ_PRICE * cached
        fits = (
            situation.prompt_tokens + INSTRUCTION_TOKENS + self.summary_tokens <= situation.window
        )
        # What a provider has just refused cannot be sent once more with an instruction behind it.
        if Trigger.WINDOW in situation.triggers or not fits or prefix_price >= tokens:
            return SummaryForm.OWN_PROMPT
        return SummaryForm.AGENT_PREFIX

    def _prompt(self, form: SummaryForm, events: Sequence[ShownEvent], situation: Situation) -> str:
        tokens = self._summary_tokens(situation)
        if form is SummaryForm.AGENT_PREFIX:
            # The model knows no ids of events: it finds the stretch by its first and its last
            # words.
            first, last = (one_line(cut(event_text(e), 200)) for e in (events[0], events[-1]))
            where = (
                f"above, from the message that begins and ends with <<{first}>> to the one with"
                f" <<{last}>>"
            )
            return INSTRUCTION.format(where=where, tokens=tokens)
        budget = self._budget(situation)
        parts = [
            f"## {speaker_of(event)}\n{fenced(_whole(event, situation, budget))}"
            for event in events
        ]
        return INSTRUCTION.format(where="below", tokens=tokens) + "\n\n" + "\n\n".join(parts)

    def _forget(
        self,
        situation: Situation,
        ids: tuple[str, ...],
        text: str,
        response_id: str | None,
        failures: tuple[str, ...] = (),
    ) -> Forget:
        reason = ", ".join(sorted(situation.triggers))
        if failures:
            # Behind the semicolon, which parts what was due from what failed: readers cut there.
            reason += "; extract, since " + "; ".join(failures)
        return Forget(
            Condensation(
                id=situation.condensation_id,
                turn=situation.turn,
                forgotten_event_ids=ids,
                summary=text,
                llm_response_id=response_id,
                condenser="llm_summary",
                reason=reason,
            )
        )


def instruction_of(request: SummaryRequest) -> str:
    """What the model is told to do, without the events themselves."""
    if request.form is SummaryForm.AGENT_PREFIX:
        return request.prompt
    return INSTRUCTION.format(where="below", tokens=request.max_summary_tokens)


def fault_of(text: str, request: SummaryRequest, situation: Situation) -> str:
    """Why ``text`` is of no use as the summary that was asked for; empty if it is of use.

    Models overshoot, so twice what was asked for is accepted; more would leave no room for what
    comes.
    """
    if not text.strip():
        return "the summary is empty"
    # Counted as the event that it would be: its message has tokens beside those of the text.
    summary = CondensationSummaryEvent(id="", turn=situation.turn, summary=text)
    if situation.count(summary) > 2 * request.max_summary_tokens:
        return "the summary is much longer than was asked for"
    if len(text) > 2 * CHARACTERS_A_TOKEN * max(request.input_tokens, request.max_summary_tokens):
        return "the summary is longer than what it stands for"
    return ""


def _whole(event: ShownEvent, situation: Situation, budget: int) -> str:
    """The event's whole text; only an event that is beyond the budget by itself loses its
    middle.
    """
    text = event_text(event)
    tokens = situation.count(event)
    return text if tokens <= budget else cut(text, len(text) * budget // tokens)
