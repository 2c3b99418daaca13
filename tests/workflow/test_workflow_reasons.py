"""What a job's reason says of an activity that was given up."""

from temporalio.api.failure.v1 import Failure
from temporalio.converter import DataConverter

from workflows.failing import cause_of

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
