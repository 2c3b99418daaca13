"""What a turn's attempts cost beside the one that was answered, each counted once."""

from __future__ import annotations

from dataclasses import dataclass, field

from runtime.base.values import Failed


@dataclass
class OtherAttempts:
    """The attempts at one turn, by their numbers.

    ``aside`` are those that need no counting: the step's own, and requests that another followed.
    ``failed`` are failures, ``beaten`` replies that came after the turn's step.

    ``told`` is what the step says of failed attempts. It counts the first of them, those that were
    still in flight by an estimate: what came of one of these later is not counted again, as the job
    did not book it again.
    """

    numbers: set[int] = field(default_factory=set)
    aside: set[int] = field(default_factory=set)
    failed: dict[int, Failed] = field(default_factory=dict)
    beaten: dict[int, Failed] = field(default_factory=dict)
    told: Failed = field(default_factory=Failed)

    def spent_on_nothing(self) -> Failed:
        """What the attempts used that no reply came of."""
        untold = self._untold()
        return sum((spent for number, spent in self.failed.items() if number in untold), self.told)

    def paid_beside(self) -> list[Failed]:
        """What replies cost that the turn did not go on with."""
        untold = self._untold()
        return [spent for number, spent in self.beaten.items() if number in untold]

    def _untold(self) -> set[int]:
        known = {*self.numbers, *self.failed, *self.beaten} - self.aside
        # The step counts attempts in their order, so the first so many are in its sum.
        return set(sorted(known)[self.told.attempts :])
