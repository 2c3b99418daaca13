"""The rolling window: the oldest events go, without a summary."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.history.condensers.base import Forget, Keep, Outcome, Situation, WithoutSummaries
from runtime.history.condensers.ranges import stretch_to_forget
from runtime.history.condensers.settings import check
from runtime.history.events import Condensation
from runtime.history.view import View


@dataclass(frozen=True, slots=True)
class RollingWindow(WithoutSummaries):
    """Forgets from behind the first ``keep_first`` events, down to half of ``max_size`` events."""

    max_size: int = 120
    keep_first: int = 2

    def __post_init__(self) -> None:
        least = {"max_size": (self.max_size, 1), "keep_first": (self.keep_first, 0)}
        check("rolling", least=least, max_size=self.max_size, keep_first=self.keep_first)

    def condense(self, view: View, situation: Situation) -> Outcome:
        """Forget the oldest stretch that answers the triggers."""
        stretch = stretch_to_forget(
            view, situation, keep_first=self.keep_first, max_events=self.max_size
        )
        if stretch is None:
            return Keep()
        triggers = ", ".join(sorted(situation.triggers))
        return Forget(
            Condensation(
                id=situation.condensation_id,
                turn=situation.turn,
                forgotten_event_ids=stretch.ids,
                condenser="rolling",
                reason=triggers,
            )
        )
