"""The time that a job may take: work for the wall budget, the clock for a deadline."""

from __future__ import annotations

import pytest

from runtime.base.spec.models import Budget
from runtime.job.ledger import Ledger
from runtime.job.stops import JobStatus, Stop

START = 1_800_000_000.0
DAY = 86_400.0


def test_time_in_which_nobody_worked_is_not_spent() -> None:
    """A hundred days after its start a job has what it has not worked."""
    ledger = Ledger(Budget(wall_seconds=100), START)
    ledger.work(60.0)
    ledger.work(-5.0)  # two machines' clocks
    later = START + 100 * DAY
    assert (ledger.wall_left(), ledger.time_left(later), ledger.stop(1, later)) == (
        40.0,
        40.0,
        None,
    )
    assert ledger.spending(2, later).line().endswith("; 0m left]")
    ledger.work(40.0)
    assert ledger.stop(1, later) == Stop(JobStatus.BUDGET, "the wall budget of 100 s is spent")


def test_what_is_left_is_told_where_an_attempt_would_come_later() -> None:
    """Of the budget of which less is left."""
    ledger = Ledger(Budget(wall_seconds=100, deadline=50.0), START)
    ledger.work(60.0)
    assert (
        ledger.wait_reason(START) == "the wall budget of 100 s has 40s left, too little for another"
        " attempt"
    )
    assert (
        ledger.wait_reason(START + 20)
        == "the deadline (50s after the job's start) comes before another attempt"
    )
    ledger.until = "2027-01-15T08:00:30+00:00"
    assert (
        ledger.wait_reason(START)
        == "the time of the batch's budget ends before another attempt (at"
        " 2027-01-15T08:00:30+00:00)"
    )


@pytest.mark.parametrize(
    ("deadline", "words"),
    [
        (28_800.0, "8h after the job's start"),
        ("2027-01-15T16:00:00+00:00", "2027-01-15T16:00:00+00:00"),
    ],
)
def test_a_deadline_is_by_the_clock(deadline: float | str, words: str) -> None:
    """Eight hours after the start, whoever worked until then."""
    ledger = Ledger(Budget(wall_seconds=36_000, deadline=deadline), START)
    assert ledger.time_left(START + 28_799) == 1.0
    assert ledger.spending(2, START + 3_600).line().endswith("; 10h00m left; deadline in 7h00m]")
    assert ledger.stop(1, START + 28_799) is None
    assert ledger.stop(1, START + 28_800) == Stop(
        JobStatus.BUDGET, f"the deadline ({words}) has passed"
    )
