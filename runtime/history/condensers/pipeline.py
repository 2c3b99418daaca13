"""A pipeline: the first of several condensers that has an answer gives it."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.history.condensers.base import Condenser, GiveUp, Keep, Outcome, Situation
from runtime.history.condensers.request import SummaryReply, SummaryRequest
from runtime.history.view import View


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Condensers in order of preference."""

    condensers: tuple[Condenser, ...]

    def __post_init__(self) -> None:
        if not self.condensers:
            raise ValueError(
                "pipeline: at least one condenser is needed; NoCondenser forgets nothing"
            )

    def condense(self, view: View, situation: Situation) -> Outcome:
        """The first answer that does something; if there is none, the last reason to give up, or
        ``Keep``.
        """
        outcome: Outcome = Keep()
        for condenser in self.condensers:
            answer = condenser.condense(view, situation)
            if not isinstance(answer, Keep | GiveUp):
                return answer
            outcome = answer if isinstance(answer, GiveUp) else outcome
        return outcome

    def resume(
        self, view: View, situation: Situation, request: SummaryRequest, reply: SummaryReply
    ) -> Outcome:
        """The first answer of a condenser that knows what to do with a summary."""
        for condenser in self.condensers:
            answer = condenser.resume(view, situation, request, reply)
            if not isinstance(answer, Keep):
                return answer
        return Keep()
