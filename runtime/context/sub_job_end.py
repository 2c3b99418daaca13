"""How a job ended that a job has started itself (docs/batches.md)."""

from __future__ import annotations

from pydantic import Field

from runtime.base.values import Compact


class SubJobEnd(Compact):
    """How the sub-job ``job`` (``BATCH/JOB``) ended, and what it spent with its own sub-jobs.

    ``lost``: nobody knows what it spent.
    """

    job: str
    status: str
    reason: str = ""
    turns: int = 0
    tokens: int = 0
    usd: float = Field(default=0.0, allow_inf_nan=False)
    lost: bool = False
