"""When a condensation is due, and the loop guard: what a job asks before every model call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.history.condensers.base import Condenser, GiveUp, Keep, Outcome, Situation, Trigger
from runtime.history.condensers.hard_reset import HardReset
from runtime.history.events import ActionEvent, Condensation, Event, MessageEvent, MessageSource
from runtime.history.log import EventLog
from runtime.history.view import View


@dataclass(frozen=True, slots=True)
class Limits:
    """When a View is too large: more than ``max_events`` events, or a prompt of more than
    ``max_tokens`` tokens.
    """

    max_events: int | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class LoopGuard:
    """Ends a loop of condensations that make no progress.

    ``between_replies`` is how many condensations may follow each other before the model has
    answered again. ``replies`` is after how many replies in a row, each with a condensation before
    it, only a request or a provider's refusal leads to another: then the limits are below what must
    stay, and forgetting more does not help.
    """

    between_replies: int = 6
    replies: int = 8

    def exhausted(self, events: Sequence[Event]) -> str | None:
        """Why no further condensation may follow the log's ``events`` before a reply; ``None`` if
        one may.
        """
        count = 0
        for event in reversed(events):
            if _reply_of(event) is not None:
                break
            # Those count too that the door rejected: else one without effect could follow another
            # for ever.
            count += type(event) is Condensation
        if count < self.between_replies:
            return None
        return f"{count} condensations in a row did not make the prompt fit"

    def futile(self, events: Sequence[Event]) -> bool:
        """Whether each of the last replies had a condensation before it."""
        seen: set[str] = set()
        condensed = False
        for event in reversed(events):
            reply = _reply_of(event)
            if reply is not None and reply not in seen:
                # None between these two replies: the limits can be met.
                if seen and not condensed:
                    return False
                if len(seen) == self.replies:
                    return True
                seen.add(reply)
                condensed = False
            condensed = condensed or type(event) is Condensation
        return False


def _reply_of(event: Event) -> str | None:
    """The reply that an event is part of, if it is: an action's response, or the agent's own
    words.
    """
    if type(event) is ActionEvent:
        return event.llm_response_id
    # A model that talks and writes no statement has answered all the same.
    return event.id if type(event) is MessageEvent and event.source is MessageSource.AGENT else None


def triggers_of(
    view: View, limits: Limits, prompt_tokens: int, window_error: bool
) -> frozenset[Trigger]:
    """What makes a condensation due, before a call (``window_error`` is false) or after a provider
    refused it.
    """
    due = {
        Trigger.EVENTS: limits.max_events is not None and len(view) > limits.max_events,
        Trigger.TOKENS: limits.max_tokens is not None and prompt_tokens > limits.max_tokens,
        Trigger.REQUEST: view.unhandled_condensation_request,
        Trigger.WINDOW: window_error,
    }
    return frozenset(trigger for trigger, applies in due.items() if applies)


def plan(
    log: EventLog, condenser: Condenser, situation: Situation, guard: LoopGuard | None = None
) -> Outcome:
    """What to do about the log's View now.

    A context-window error is never answered with ``Keep``.
    """
    if not situation.triggers:
        return Keep()
    guard = guard or LoopGuard()
    reason = guard.exhausted(log.events)
    if reason is not None:
        # Limits are ours, and softer than the provider's: the prompt is sent as it is.
        return GiveUp(reason) if Trigger.WINDOW in situation.triggers else Keep()
    if situation.triggers <= {Trigger.EVENTS, Trigger.TOKENS} and guard.futile(log.events):
        return Keep()
    outcome = condenser.condense(log.view, situation)
    # What was refused would be refused again, so something must go, whatever the job asked for.
    if isinstance(outcome, Keep | GiveUp) and Trigger.WINDOW in situation.triggers:
        return HardReset().condense(log.view, situation)
    return outcome
