"""The condenser that never forgets."""

from __future__ import annotations

from runtime.history.condensers.base import Keep, Outcome, Situation, WithoutSummaries
from runtime.history.view import View


class NoCondenser(WithoutSummaries):
    """Keeps every event.

    A provider's context-window error is then left to ``HardReset`` (see ``plan``).
    """

    def condense(self, view: View, situation: Situation) -> Outcome:
        """Always ``Keep``."""
        return Keep()
