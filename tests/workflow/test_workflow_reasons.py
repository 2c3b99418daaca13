"""What a job's reason says of an activity that was given up, and what errors mean for a job."""

import asyncio
from datetime import timedelta

import pytest
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DataConverter
from temporalio.exceptions import ActivityError, ApplicationError, RetryState

from runtime.base.spec.models import Amount, Budget, JobSpec, ModelSettings
from runtime.base.values import Failed
from runtime.job.job import Job
from runtime.job.ledger import Ledger
from runtime.job.purse import Granted
from runtime.job.stops import BudgetSpent, Cause, JobFailed, JobStatus, Stop
from workflows.failing import cause_of, stopped_by

START = 1_800_000_000.0

TOO_LATE = (
    "Not enough time to schedule next retry before activity ScheduleToClose timeout, giving up"
    " retrying"
)


async def _raised(cause: Failure) -> BaseException:
    """The error that a workflow gets when the server gave an activity up, from the server's own
    message.
    """
    failure = Failure(message="activity error", cause=cause)
    failure.activity_failure_info.activity_id = "turn-1"
    return await DataConverter.default.decode_failure(failure)


async def test_the_last_attempt_says_why() -> None:
    """Where the server has no time for another attempt, the reason is why the attempts before
    failed.
    """
    last = Failure(message="no byte of a reply arrived within 120 s")
    last.application_failure_info.type = "ModelTimeout"
    late = Failure(message=TOO_LATE, cause=last)
    late.timeout_failure_info.SetInParent()
    assert cause_of(await _raised(late)) == "ModelTimeout: no byte of a reply arrived within 120 s"


async def test_a_timeout_alone_is_the_reason() -> None:
    """An attempt that no failure came before is told as the server tells it."""
    late = Failure(message="activity StartToClose timeout")
    late.timeout_failure_info.SetInParent()
    assert cause_of(await _raised(late)) == "activity StartToClose timeout"


def _failed(
    type: str,
    *details: object,
    activity: str = "call_model",
    state: RetryState | None = None,
    wait: timedelta | None = None,
) -> ActivityError:
    error = ActivityError(
        "activity error",
        scheduled_event_id=1,
        started_event_id=2,
        identity="",
        activity_type=activity,
        activity_id="turn-1",
        retry_state=state,
    )
    error.__cause__ = ApplicationError("Oops", *details, type=type, next_retry_delay=wait)
    return error


def _ledger() -> Ledger:
    """A job's in its first turn, which may last a minute, and is granted no more than it has."""
    spec = JobSpec(
        id="a",
        goal="b",
        workspace="/",
        model=ModelSettings(name="c"),
        budget=Budget(tokens=100, deadline=60.0),
    )
    job = Job(spec, key="d", started=START, count=len)
    job.ledger.answered(Granted(reason="the batch has no more"))
    job.ingest([], START)
    return job.ledger


TOO_MUCH, LITTLE = Amount(tokens=101), Amount(tokens=99)
LATE = "the deadline (1m after the job's start) has passed"


@pytest.mark.parametrize(
    ("error", "now", "stop"),
    [
        (asyncio.CancelledError(), 0, Stop(JobStatus.CANCELLED, "cancelled")),
        (JobFailed("no", Cause.TOOL), 0, Stop(JobStatus.FAILED, "no", cause=Cause.TOOL)),
        (BudgetSpent("all"), 0, Stop(JobStatus.BUDGET, "all")),
        (
            _failed("Down"),
            0,
            Stop(JobStatus.FAILED, "turn 1: Down: Oops", cause=Cause.PROVIDER),
        ),
        (
            _failed("Down", activity="call_tool"),
            0,
            Stop(JobStatus.FAILED, "turn 1: Down: Oops", cause=Cause.TOOL),
        ),
        (
            _failed("Down", state=RetryState.TIMEOUT),
            0,
            Stop(JobStatus.BUDGET, f"{LATE}; turn 1: Down: Oops"),
        ),
        (_failed("Down"), 59, Stop(JobStatus.BUDGET, f"{LATE}; turn 1: Down: Oops")),
        (
            _failed("BudgetSpent", Failed()),
            0,
            Stop(JobStatus.BUDGET, "the batch has no more; turn 1: Oops"),
        ),
        (
            _failed("BudgetSpent", Failed(), wait=timedelta(seconds=59)),
            0,
            Stop(JobStatus.BUDGET, "the batch has no more; turn 1: Oops"),
        ),
        (
            _failed("BudgetSpent", Failed(), wait=timedelta(seconds=60)),
            0,
            Stop(
                JobStatus.BUDGET,
                "the deadline (1m after the job's start) comes before another attempt; turn 1:"
                " Oops",
            ),
        ),
        (_failed("BudgetSpent", Failed()), 60, Stop(JobStatus.BUDGET, f"{LATE}; turn 1: Oops")),
        (
            _failed("BudgetShort", Failed(), LITTLE),
            0,
            Stop(JobStatus.BUDGET, "the batch has no more; turn 1: Oops"),
        ),
        (
            _failed("BudgetShort", Failed(), TOO_MUCH),
            0,
            Stop(JobStatus.BUDGET, "the job's budget holds no other call; turn 1: Oops"),
        ),
    ],
)
def test_what_an_error_means_for_the_job(error: BaseException, now: float, stop: Stop) -> None:
    """It is the user's wish, a budget, the clock, or a failure of what the error came from."""
    assert stopped_by(error, 1, _ledger(), START + now) == stop
