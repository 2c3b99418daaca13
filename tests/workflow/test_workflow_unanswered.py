"""What becomes of a call that waits for a person where nobody answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio import workflow

from activities.contracts import Asked
from runtime.base.spec.models import Approvals, JobSpec, ModelSettings
from runtime.base.values import JobKey
from runtime.interpreter.host import Effect, EffectKind
from runtime.interpreter.job_host import ToolRequest
from workflows import approving
from workflows.approving import Approving

HOUR = 3600.0


class Waiting:
    """Where a job waits for an answer, with so many seconds until its deadline."""

    def __init__(self, left: float | None) -> None:
        self.answers = SimpleNamespace(effect=None)
        self.job = SimpleNamespace(desk=SimpleNamespace(approved=[]))
        self._left = left

    def until_deadline(self) -> timedelta | None:
        return None if self._left is None else timedelta(seconds=self._left)

    async def after(self, wait: Awaitable[Any], _: Callable[[Any], float]) -> Any:
        return await wait


@pytest.mark.parametrize("goes_by", [True, False])
@pytest.mark.parametrize(
    ("wait", "left", "lasts", "approved", "within"),
    [
        (HOUR, None, HOUR, True, "1h"),
        (HOUR, 2 * HOUR, HOUR, True, "1h"),
        (HOUR, HOUR, HOUR, True, "1h"),
        (2 * HOUR, HOUR, HOUR, False, "the job's deadline"),
        (None, HOUR, HOUR, False, "the job's deadline"),
    ],
)
def test_a_deadline_approves_nothing(
    goes_by: bool,
    wait: float | None,
    left: float | None,
    lasts: float,
    approved: bool,
    within: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``otherwise`` holds once the question's own time is over; a job of before this patch makes
    the call, as its history has it.
    """
    waited: list[timedelta] = []

    async def asked(*_: object, **__: object) -> Asked:
        return Asked()

    async def nobody(_: object, **how: Any) -> None:
        waited.append(how["timeout"])
        raise TimeoutError

    monkeypatch.setattr(approving, "result_of", asked)
    monkeypatch.setattr(approving, "patched", lambda _: goes_by)
    monkeypatch.setattr(workflow, "info", lambda: SimpleNamespace(run_id="r"))
    monkeypatch.setattr(workflow, "wait_condition", nobody)
    approvals = Approvals(tools={"pay": "always"}, wait=wait, otherwise="approve")
    spec = JobSpec(
        id="a", goal="g", workspace="/w", model=ModelSettings(name="m/x"), approvals=approvals
    )
    call = Effect(kind=EffectKind.TOOL, name="pay", request=ToolRequest(tool="pay"))
    question = Approving(JobKey(batch="b", job="a"), spec, Waiting(left))  # type: ignore[arg-type]
    decision = asyncio.run(question.decided(call, 1, 0))
    assert waited == [timedelta(seconds=lasts)]
    assert decision.approved is (approved or not goes_by)
    if goes_by:
        assert decision.reason == f"nobody answered within {within}"
