"""What a condenser is: a pure decision about a View.

It forgets, asks for a summary, or keeps all as it is.

A condenser calls no model and counts no tokens itself: it is given the counts, and where it needs a
summary it returns a request, which somebody else carries out, and is then asked to go on with the
reply.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from runtime.history.condensers.request import SummaryReply, SummaryRequest
from runtime.history.events import Condensation, ShownEvent
from runtime.history.view import View


class Trigger(StrEnum):
    """Why a condensation is due."""

    EVENTS = "events"
    TOKENS = "tokens"
    REQUEST = "request"
    WINDOW = "window"


@dataclass(frozen=True, slots=True)
class Situation:
    """All that a condenser may know beside the View.

    ``condensation_id`` is the id that the next condensation gets. ``count`` gives an event's size
    in tokens of the job's pinned encoding. ``prompt_tokens`` is the size of the whole prompt as it
    would be sent now, ``window`` the most that may be sent, ``cached_tokens`` how much of the
    prompt's beginning the provider has in its cache. ``fixed_tokens`` is the part of the prompt
    that no condensation makes smaller: what is pinned, and what is not made from events.
    ``unseen_from`` is the View's position from which the model has not been shown the events yet,
    with the reply that they answer: they stay. ``None`` lets them go too.
    """

    condensation_id: str
    turn: int
    triggers: frozenset[Trigger]
    count: Callable[[ShownEvent], int]
    prompt_tokens: int
    window: int
    cached_tokens: int = 0
    fixed_tokens: int = 0
    unseen_from: int | None = None


@dataclass(frozen=True, slots=True)
class Keep:
    """Nothing is to be done."""


@dataclass(frozen=True, slots=True)
class Forget:
    """Append this condensation to the log."""

    condensation: Condensation


@dataclass(frozen=True, slots=True)
class Ask:
    """Have this summary written, and go on with the reply (``Condenser.resume``)."""

    request: SummaryRequest


@dataclass(frozen=True, slots=True)
class GiveUp:
    """No condensation can help, and why: the job ends with this reason if its prompt does not
    fit.
    """

    reason: str


Outcome = Keep | Forget | Ask | GiveUp


class Condenser(Protocol):
    """Decides what a View forgets."""

    def condense(self, view: View, situation: Situation) -> Outcome:
        """What to do now.

        ``Keep`` if none of the situation's triggers is this condenser's concern.
        """
        ...

    def resume(
        self, view: View, situation: Situation, request: SummaryRequest, reply: SummaryReply
    ) -> Outcome:
        """What to do now that ``request``, which this condenser made, was answered."""
        ...


class WithoutSummaries:
    """The part of a condenser that never asks for a summary."""

    def resume(
        self, view: View, situation: Situation, request: SummaryRequest, reply: SummaryReply
    ) -> Outcome:
        """A summary that another condenser asked for is not this one's to use."""
        return Keep()
