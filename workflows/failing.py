"""What an activity's error says: in words, of the money that was spent on it, and whether its job
ends by it.
"""

from __future__ import annotations

from pydantic import ValidationError
from temporalio import workflow
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    RetryState,
    TimeoutError,
    TimeoutType,
    is_cancelled_exception,
)

with workflow.unsafe.imports_passed_through():
    from activities.contracts import BUDGET_SHORT, BUDGET_SPENT, HAS_ROOM
    from runtime.base.spec.models import Amount
    from runtime.base.values import Failed
    from runtime.job.ledger import Ledger
    from runtime.job.purse import covers
    from runtime.job.stops import BudgetSpent, Cause, JobFailed, JobStatus, Stop


def stopped_by(error: BaseException, turn: int, ledger: Ledger, now: float) -> Stop:
    """What an exception in a ``turn`` means for the job that has the ``ledger``.

    Any other kind fails the workflow task, and is tried again.
    """
    if is_cancelled_exception(error):
        return Stop(JobStatus.CANCELLED, "cancelled")
    if isinstance(error, JobFailed):
        return Stop(JobStatus.FAILED, str(error), cause=error.cause)
    if isinstance(error, BudgetSpent):
        return Stop(JobStatus.BUDGET, str(error))
    cause = error.cause if isinstance(error, ActivityError) else None
    if isinstance(cause, ApplicationError) and cause.type == BUDGET_SPENT:
        spent = ledger.stop(turn - 1, now)
        if spent is not None:
            budget = spent.reason
        elif waits_too_long(cause, ledger, now):
            budget = ledger.wait_reason(now)
        else:
            budget = ledger.refused or ledger.time_reason(now)
        return Stop(JobStatus.BUDGET, f"{budget}; turn {turn}: {cause.message}")
    if isinstance(cause, ApplicationError) and cause.type == BUDGET_SHORT:
        tokens, usd = (max(left, 0) for left in ledger.own_left())
        own = covers(Amount(tokens=tokens, usd=usd), wanted_by(cause))
        budget = ledger.refused if own else "the job's budget holds no other call"
        return Stop(JobStatus.BUDGET, f"{budget}; turn {turn}: {cause.message}")
    last = f"turn {turn}: {cause_of(error)}"
    if given_up(error):
        return Stop(JobStatus.BUDGET, f"{ledger.deadline_reason()}; {last}")
    if ledger.time_left(now) <= 1:
        return Stop(JobStatus.BUDGET, f"{ledger.time_reason(now)}; {last}")
    return Stop(JobStatus.FAILED, last, cause=cause_in(error))


def failed_in(error: BaseException) -> Failed:
    """What the failed attempts at a model call used, as the error tells with which the call ended;
    or the last attempt's that did.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ApplicationError) and cause.details:
            try:
                # Details are whatever an activity of some release put there: what does not fit says
                # nothing.
                return Failed.model_validate(cause.details[0])
            except ValidationError:
                return Failed()
        cause = cause.__cause__
    return Failed()


def wanted_by(error: ApplicationError) -> Amount:
    """What a call needs that was not made, since it did not fit into what was left."""
    try:
        return Amount.model_validate(error.details[1])
    except (IndexError, ValidationError):
        return Amount()


def waits_too_long(error: ApplicationError, ledger: Ledger, now: float) -> bool:
    """Whether the wait for another attempt is longer than the job may go on."""
    wait = error.next_retry_delay
    return wait is not None and wait.total_seconds() >= ledger.time_left(now)


def has_room(error: ApplicationError) -> bool:
    """Whether a call that was refused had a prompt that cannot have been too long."""
    return HAS_ROOM in error.details[1:]


def given_up(error: BaseException) -> bool:
    """Whether an activity was given up for the time that it might take with all its waits, which
    only a deadline bounds.

    The server does so as soon as the next attempt would come too late, not when the time is over.
    """
    if not isinstance(error, ActivityError):
        return False
    cause = error.cause
    late = isinstance(cause, TimeoutError) and cause.type is TimeoutType.SCHEDULE_TO_CLOSE
    return late or error.retry_state is RetryState.TIMEOUT


def cause_of(error: BaseException) -> str:
    """An activity's error in its own words, with the name of its kind."""
    cause = error.cause if isinstance(error, ActivityError) else None
    # An attempt that the server timed out is told with the last failure before it, which says more.
    while isinstance(cause, TimeoutError) and cause.cause is not None:
        cause = cause.cause
    if isinstance(cause, ApplicationError):
        return f"{cause.type}: {cause.message}" if cause.type else cause.message
    return str(cause or error)


def cause_in(error: BaseException) -> Cause:
    """What made a job fail, by the activity whose error ended it."""
    if not isinstance(error, ActivityError):
        return Cause.ERROR
    if error.activity_type in _CALLS:
        return Cause.PROVIDER
    return Cause.TOOL if error.activity_type in _HANDS else Cause.ERROR


_CALLS = frozenset({"call_model", "summarise"})
_HANDS = frozenset(
    {
        *("call_tool", "list_servers", "change_workspace", "open_workspace"),
        *("file_call", "read_sources"),
    }
)
"""Activities by what fails in them."""
