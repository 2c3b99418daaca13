"""What a job is told that no part of it could take: the SDK drops a signal that is none."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import ValidationError

from activities.contracts import Decision
from runtime.context.sub_job_end import SubJobEnd
from runtime.interpreter.approved import other_request
from runtime.interpreter.hands import asked
from runtime.interpreter.host import Effect, EffectKind


@pytest.mark.parametrize(
    "fields",
    [
        {"arguments": {"args": 3}},
        {"arguments": {"args": "x", "kwargs": {}}},
        {"arguments": {"args": [], "kwargs": []}},
        {"at": math.nan},
        {"at": math.inf},
    ],
)
def test_an_answer_with_what_no_call_has_is_none(fields: dict[str, Any]) -> None:
    """Arguments that are no list or no mapping, and a time that JSON has no number for."""
    with pytest.raises(ValidationError):
        Decision(question="q", approved=True, **fields)


@pytest.mark.parametrize("usd", [math.nan, math.inf])
def test_an_end_that_cost_no_number_is_none(usd: float) -> None:
    """It is handed on as JSON, where it would be null, and no activity could read it."""
    with pytest.raises(ValidationError):
        SubJobEnd(job="a/b", status="succeeded", usd=usd)


@pytest.mark.parametrize("arguments", [{}, {"kwargs": {"timeout": 5}}])
def test_of_arguments_that_an_answer_leaves_out_the_calls_own_stay(
    arguments: dict[str, Any],
) -> None:
    """Of a command as of a tool."""
    effect = Effect(EffectKind.CHANGE, "sh", asked("sh", ("make",), {}))
    assert other_request(effect, arguments, ()).arguments["command"] == "make"
