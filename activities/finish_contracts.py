"""What is told of the end of a job or of a batch."""

from __future__ import annotations

from typing import Any

from activities.contracts import Contract
from runtime.base.spec.finish import FinishEvent, OnFinish
from runtime.base.values import JobKey


class FinishNotice(Contract):
    """One end, and who is told of it.

    ``key`` is the idempotency key: the same for each try, another for each end. ``told`` is the
    end in words and numbers; ``job`` is None for the batch's.
    """

    order: OnFinish
    event: FinishEvent
    key: str
    batch: str
    job: JobKey | None = None
    run: str = ""
    told: dict[str, Any] = {}
    last: int = 1
    """The number of the last try."""


class FinishTold(Contract):
    """Whether it was heard, and if not, why."""

    heard: bool
    error: str = ""
    tries: int = 1
