"""What a job's archive says of a condensation, beside the log that only the job itself holds."""

from __future__ import annotations

from runtime.base.values import Compact, StepRef, Usage


class CondensationOutcome(Compact):
    """A condensation that took effect: told by the next step, or by the run's end.

    ``forgotten`` are the ids of the events that left the View, ``unknown`` those that it named and
    nobody knew. ``stands_in`` is the id of the event that stands for them, whose segment has the
    origin ``event:<id>``; ``None`` if nothing does. ``summary`` is the step in which a model wrote
    it, ``failures`` why earlier requests for it were of no use; ``usage`` and ``cost_usd`` are
    those of all requests together.
    """

    id: str
    condenser: str
    reason: str
    forgotten: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    stands_in: str | None = None
    summary: StepRef | None = None
    failures: tuple[str, ...] = ()
    usage: Usage = Usage()
    cost_usd: float = 0.0
