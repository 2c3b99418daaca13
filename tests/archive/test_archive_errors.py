"""What Temporal is told when the archive cannot be written is the archive's own words, small enough
to be kept; and no secret is in what any activity says.
"""

from __future__ import annotations

import errno
from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DefaultFailureConverter, DefaultPayloadConverter
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from activities.contracts import FileCall
from activities.plain_errors import PlainErrors
from runtime.archive.stores import open_store
from runtime.base.errors import ArchiveError
from runtime.base.redaction.rules import Redaction

REQUEST = ExecuteActivityInput(fn=print, args=(), executor=None, headers={})
KEPT = 4_096
"""Bytes of a pending activity's failure that the server keeps."""


class Failing(ActivityInboundInterceptor):
    """An activity whose archive is on a server that does not answer."""

    def __init__(self) -> None:
        pass

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        open_store("s3://bucket/p?endpoint_url=http://127.0.0.1:9&region=us-east-1")


def size_of(error: Exception) -> int:
    failure = Failure()
    DefaultFailureConverter().to_failure(error, DefaultPayloadConverter(), failure)
    return failure.ByteSize()


@pytest.mark.usefixtures("aws")
async def test_an_outage_is_told_in_the_archives_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """The chain of a library's errors, which is larger than what the server keeps, is left out."""
    monkeypatch.setattr("runtime.archive.stores.s3._FIRST_PAUSE_S", 0.001)
    with pytest.raises(ArchiveError) as plain:
        await Failing().execute_activity(REQUEST)
    with pytest.raises(ApplicationError) as told:
        await PlainErrors().intercept_activity(Failing()).execute_activity(REQUEST)
    assert size_of(told.value) < KEPT / 4 < size_of(plain.value)
    assert (told.value.type, told.value.message) == ("ArchiveError", str(plain.value))


class Full(Failing):
    """An activity whose host has no room for the files of a job."""

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        def deeper(calls: int) -> None:
            if calls == 0:
                raise OSError(errno.ENOSPC, "No space left on device", "/x")
            deeper(calls - 1)

        deeper(100)


async def test_trouble_of_the_host_is_told_in_its_words() -> None:
    """Without a traceback, of which the server would keep nothing, the words included."""
    with pytest.raises(ApplicationError) as told:
        await PlainErrors().intercept_activity(Full()).execute_activity(REQUEST)
    assert size_of(told.value) < KEPT
    assert told.value.type == "OSError"
    assert told.value.message == "[Errno 28] No space left on device: '/x'"


class Refused(Failing):
    """An activity that says why it cannot go on, with what it knows, and of what that came."""

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        try:
            raise ValueError("no 4711-0815")
        except ValueError as error:
            raise ApplicationError(
                f"importing 'm' failed: {error}, nor {'correct horse battery'}",
                7,
                type="ToolUnavailable",
                non_retryable=True,
                next_retry_delay=timedelta(seconds=5),
                category=ApplicationErrorCategory.BENIGN,
            ) from error


async def test_secrets_in_an_activitys_error_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the environment, and those that its job names; what else it says stays."""
    monkeypatch.setenv("DB_PASSWORD", "correct horse battery")
    monkeypatch.setenv("TEAM_PIN", "4711-0815")
    monkeypatch.setenv("HOLDFAST_REDACTION_KEY", "k" * 20)
    call = FileCall(workspace="", operation="", path="", redact=Redaction(env=("TEAM_PIN",)))
    request = ExecuteActivityInput(fn=print, args=(call,), executor=None, headers={})
    with pytest.raises(ApplicationError) as told:
        await PlainErrors().intercept_activity(Refused()).execute_activity(request)
    error, failure = told.value, Failure()
    DefaultFailureConverter().to_failure(error, DefaultPayloadConverter(), failure)
    assert "4711" not in str(failure) and "horse" not in str(failure)
    assert error.message.startswith("importing 'm' failed: no [masked:TEAM_PIN:")
    assert "nor [masked:DB_PASSWORD:" in error.message
    assert (error.type, error.details, error.non_retryable) == ("ToolUnavailable", (7,), True)
    assert (error.next_retry_delay, error.category) == (
        timedelta(seconds=5),
        ApplicationErrorCategory.BENIGN,
    )
