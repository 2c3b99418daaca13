"""The local activity that makes the verdict of a stretch durable (docs/design.md section 4)."""

from __future__ import annotations

from temporalio import activity

from runtime.base.failpoints import failpoint
from runtime.interpreter.run import Verdict


class RecordedVerdict(Verdict):
    """A verdict, and what the look before it saw (``workflows.moment.Moment``).

    ``at`` is when that was, in workflow time, in seconds; 0.0 if a verdict before this one has it,
    and in histories of before. ``events`` is how long the history was then, if the server suggested
    to continue as new, else 0.
    """

    at: float = 0.0
    events: int = 0


@activity.defn(name="record_verdict")
async def record_verdict(verdict: RecordedVerdict | None) -> RecordedVerdict | None:
    """Return ``verdict``, so that the workflow's history holds it.

    ``None`` says that nothing was recorded yet.
    """
    failpoint("verdict.before_return")
    return verdict
