"""A server that is away while a replay runs: it is waited for."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent, WorkflowExecutionTerminatedEventAttributes
from temporalio.client import (
    Client,
    FetchWorkflowHistoryEventsInput,
    Interceptor,
    OutboundInterceptor,
)
from temporalio.service import RPCError, RPCStatusCode

from runtime.base.errors import ServerError
from runtime.base.values import JobKey
from runtime.client import resets
from runtime.client.resets import Reset, outcome_of_reset

MADE = Reset(JobKey(batch="night", job="a"), "2a1ab9a6-2bd4-4a4b-9f53-6d0a4b3c6e11", "a-queue")


class Away(Interceptor):
    """A server that gives errors so many times, and then tells that the run was terminated."""

    def __init__(self, status: RPCStatusCode, failures: int) -> None:
        self.status = status
        self.failures = failures
        self.asked = 0

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        """Answer in the server's place."""
        return _InItsPlace(next, self)

    async def events(self) -> AsyncIterator[HistoryEvent]:
        """The next answer."""
        self.asked += 1
        if self.asked <= self.failures:
            raise RPCError(f"tcp connect error {self.asked}", self.status, b"")
        yield HistoryEvent(
            event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
            workflow_execution_terminated_event_attributes=(
                WorkflowExecutionTerminatedEventAttributes(reason="by hand")
            ),
        )


class _InItsPlace(OutboundInterceptor):
    def __init__(self, next: OutboundInterceptor, server: Away) -> None:
        super().__init__(next)
        self._server = server

    def fetch_workflow_history_events(
        self, input: FetchWorkflowHistoryEventsInput
    ) -> AsyncIterator[HistoryEvent]:  # type: ignore[override]
        return self._server.events()


async def _outcome(server: Away) -> tuple[BaseException, list[str]]:
    """How waiting ends, and what was told of the server meanwhile."""
    client = await Client.connect("127.0.0.1:1", lazy=True, interceptors=[server])
    told: list[str] = []
    with pytest.raises((ServerError, RPCError)) as ended:
        await outcome_of_reset(client, MADE, told.append)
    return ended.value, told


@pytest.mark.parametrize(
    "status",
    [
        RPCStatusCode.UNAVAILABLE,
        # It is busy.
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.RESOURCE_EXHAUSTED,
    ],
)
async def test_a_server_that_is_away_is_asked_until_it_tells_of_the_end(
    monkeypatch: pytest.MonkeyPatch, status: RPCStatusCode
) -> None:
    """However often; and each time it is told."""
    monkeypatch.setattr(resets, "POLL_SECONDS", 0)
    ended, told = await _outcome(Away(status, 3))
    assert "was ended from outside" in str(ended)
    assert told == [f"tcp connect error {number}" for number in (1, 2, 3)]


async def test_what_a_server_refuses_is_an_error() -> None:
    """It would be the same the next time."""
    server = Away(RPCStatusCode.PERMISSION_DENIED, 1)
    ended, told = await _outcome(server)
    assert isinstance(ended, RPCError)
    assert (told, server.asked) == ([], 1)
