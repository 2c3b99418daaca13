"""The hard reset: everything that is not pinned goes, and an extract stands for it.

The last resort.
"""

from __future__ import annotations

from dataclasses import dataclass

from runtime.history.condensers.base import (
    Forget,
    GiveUp,
    Keep,
    Outcome,
    Situation,
    Trigger,
    WithoutSummaries,
)
from runtime.history.condensers.extract import extract
from runtime.history.condensers.ranges import first_index, last_index, stretch_between
from runtime.history.events import Condensation, CondensationSummaryEvent
from runtime.history.view import View

# A condenser counts events and no texts. Most texts have more characters a token than this, so an
# extract rather has too few tokens than too many.
CHARACTERS_A_TOKEN = 3


@dataclass(frozen=True, slots=True)
class HardReset(WithoutSummaries):
    """Answers a provider's context-window error, and nothing else.

    ``share`` is the extract's part of the window.
    """

    share: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ValueError(f"hard_reset: share must be between 0 and 1, not {self.share:g}")

    def condense(self, view: View, situation: Situation) -> Outcome:
        """Forget all that may be forgotten, or give up with the reason why nothing is left to
        forget.
        """
        if Trigger.WINDOW not in situation.triggers:
            return Keep()
        start = first_index(view, 0)
        stretch = (
            stretch_between(view, start, last_index(view, situation)) if start is not None else None
        )
        # An extract of a summary alone gains nothing, and the next refusal would ask for one more.
        if stretch is None or all(isinstance(e, CondensationSummaryEvent) for e in stretch.events):
            return GiveUp(
                f"the prompt of {situation.prompt_tokens:,} tokens does not fit a window of"
                f" {situation.window:,}, and nothing is left that could be forgotten: only the"
                " contract, pinned messages and a summary are"
            )
        budget = max(int(situation.window * self.share) * CHARACTERS_A_TOKEN, 400)
        return Forget(
            Condensation(
                id=situation.condensation_id,
                turn=situation.turn,
                forgotten_event_ids=stretch.ids,
                summary=extract(stretch.events, budget),
                condenser="hard_reset",
                reason=", ".join(sorted(situation.triggers)),
            )
        )
