"""The extract in place of a summary: the oldest events go as in a rolling window, and an extract
stands for them.

For models that cannot be expected to summarise, and for jobs that should not pay for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from runtime.history.condensers.base import Forget, Keep, Outcome, Situation, WithoutSummaries
from runtime.history.condensers.extract import extract
from runtime.history.condensers.hard_reset import CHARACTERS_A_TOKEN
from runtime.history.condensers.ranges import stretch_to_forget
from runtime.history.condensers.settings import check
from runtime.history.events import Condensation
from runtime.history.view import View


@dataclass(frozen=True, slots=True)
class ExtractSummary(WithoutSummaries):
    """Forgets from behind the first ``keep_first`` events.

    The extract has at most about ``summary_tokens`` tokens.
    """

    max_size: int = 120
    keep_first: int = 2
    summary_tokens: int = 1_500

    def __post_init__(self) -> None:
        least = {
            "max_size": (self.max_size, 1),
            "keep_first": (self.keep_first, 0),
            "summary_tokens": (self.summary_tokens, 1),
        }
        check("extract", least=least, max_size=self.max_size, keep_first=self.keep_first)

    def condense(self, view: View, situation: Situation) -> Outcome:
        """Forget the oldest stretch that answers the triggers."""
        stretch = stretch_to_forget(
            view, situation, keep_first=self.keep_first, max_events=self.max_size
        )
        if stretch is None:
            return Keep()
        tokens = min(self.summary_tokens, max(situation.window // 8, 64))
        # In a small window the figure that is set would be most of what was won.
        return Forget(
            Condensation(
                id=situation.condensation_id,
                turn=situation.turn,
                forgotten_event_ids=stretch.ids,
                summary=extract(stretch.events, tokens * CHARACTERS_A_TOKEN),
                condenser="extract",
                # A set of texts has another order in each process, and a replay must give the same
                # event.
                reason=", ".join(sorted(situation.triggers)),
            )
        )
