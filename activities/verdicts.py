"""The local activity that makes the verdict of a stretch durable (docs/design.md section 4)."""

from __future__ import annotations

from temporalio import activity

from runtime.base.failpoints import failpoint
from runtime.interpreter.run import Verdict


@activity.defn(name="record_verdict")
async def record_verdict(verdict: Verdict | None) -> Verdict | None:
    """Return ``verdict``, so that the workflow's history holds it.

    ``None`` says that nothing was recorded yet.
    """
    failpoint("verdict.before_return")
    return verdict
