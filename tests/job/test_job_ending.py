"""How a job ends: a result that satisfies its schema, or a budget that is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from plain_loop import PlainLoop, native, statements

from runtime.base.digests import digest_of
from runtime.base.spec.models import Budget
from runtime.base.values import ModelReply
from runtime.job.ledger import Ledger
from runtime.job.stops import JobStatus, Stop

SCHEMA = {
    "type": "object",
    "required": ["files"],
    "properties": {"files": {"type": "array", "items": {"type": "string"}}},
}


def run(workspace: Path, *sources: str, **options: Any) -> PlainLoop:
    """Runs the statements, and replays them."""
    return PlainLoop(workspace, statements(*sources), options=options).run().replayed()


def test_a_result_that_fails_the_schema_raises_and_the_job_goes_on(workspace: Path) -> None:
    """The message says where; the statement may catch it."""
    loop = run(
        workspace,
        "finish({})",
        "finish({'files': [1]})",
        "try:\n    finish(1)\nexcept ValueError:\n    finish({'files': ['a']})",
        result=SCHEMA,
    )
    told = [execution.exception.message for execution in loop.executions if execution.exception]
    assert told == [
        "finish(): result: 'files' is a required property; the job goes on",
        "finish(): result['files'][0]: 1 is not of type 'string'; the job goes on",
    ]
    assert loop.stop == Stop(JobStatus.SUCCEEDED, "finished", {"files": ["a"]})
    assert [(a.name, a.digest) for a in loop.executions[-1].artifacts] == [
        ("result", digest_of({"files": ["a"]}))
    ]


def test_finish_in_a_statement_that_fails_later_ends_nothing(workspace: Path) -> None:
    """Only a statement that ends well finishes; the last call of several counts."""
    loop = run(workspace, "finish(1)\n1 / 0", "finish(2)\nx = 5\nfinish({'x': x})")
    assert loop.job.turn == 2
    assert loop.stop == Stop(JobStatus.SUCCEEDED, "finished", {"x": 5})


def test_a_turn_without_a_reply_is_not_counted(workspace: Path) -> None:
    """A job may be cancelled in any of its waits: before a call, and behind it."""
    loop = run(workspace, "x = 1", "finish(x)")
    job = loop.job
    assert (job.turn, job.turns) == (2, 2)
    job.ingest((), 0.0)
    assert (job.turn, job.turns) == (3, 2)


@pytest.mark.parametrize("source", ["finish(1, 2)", "finish(value=1)"])
def test_finish_takes_one_result(workspace: Path, source: str) -> None:
    """Anything else is refused before it ends the job."""
    loop = run(workspace, source, "finish(result='ok')")
    assert loop.executions[0].exception is not None
    assert loop.stop == Stop(JobStatus.SUCCEEDED, "finished", "ok")


@pytest.mark.parametrize(
    ("budget", "turns", "reason"),
    [
        ({"turns": 3}, 3, "the budget of 3 turns is spent"),
        ({"tokens": 4300}, 3, "the budget of 4,300 tokens is spent ("),
        ({"usd": 0.25}, 3, "the budget of $0.25 is spent ($0.30 used)"),
        ({"usd": 0.0042}, 1, "the budget of $0.0042 is spent ($0.10 used)"),
        ({"wall_seconds": 120}, 2, "the wall budget of 120 s is spent"),
    ],
)
def test_a_spent_budget_stops_the_job(
    workspace: Path, budget: dict[str, Any], turns: int, reason: str
) -> None:
    """Before the next call, with the budget named."""

    def policy(_: Any) -> ModelReply:
        return native("x = 1", 1).model_copy(update={"cost_usd": 0.1})

    loop = PlainLoop(workspace, policy, options={"budget": Budget(**budget)}).run().replayed()
    assert loop.job.turn == turns
    assert loop.stop is not None
    assert loop.stop.status is JobStatus.BUDGET
    assert loop.stop.reason.startswith(reason)


def test_a_long_wall_budget_is_told_to_the_second() -> None:
    """A month is no round number of seconds."""
    ledger = Ledger(Budget(wall_seconds=2_678_401), started=0.0)
    assert ledger.time_reason(0.0) == "the wall budget of 2678401 s is spent"
