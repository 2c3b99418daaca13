"""What Temporal is told when the archive cannot be written is the archive's own words, small enough
to be kept.
"""

from __future__ import annotations

import errno
from typing import Any

import pytest
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DefaultFailureConverter, DefaultPayloadConverter
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from activities.plain_errors import PlainErrors
from runtime.archive.stores import open_store
from runtime.base.errors import ArchiveError

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
    request: Any = None
    with pytest.raises(ArchiveError) as plain:
        await Failing().execute_activity(request)
    with pytest.raises(ApplicationError) as told:
        await PlainErrors().intercept_activity(Failing()).execute_activity(request)
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
    request: Any = None
    with pytest.raises(ApplicationError) as told:
        await PlainErrors().intercept_activity(Full()).execute_activity(request)
    assert size_of(told.value) < KEPT
    assert told.value.type == "OSError"
    assert told.value.message == "[Errno 28] No space left on device: '/x'"
