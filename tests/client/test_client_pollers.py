"""Whether anybody takes the calls of a queue, by the server's clock."""

from __future__ import annotations

import time
from unittest.mock import patch

import pytest
from temporalio.testing import WorkflowEnvironment

from runtime.server import pollers
from runtime.server.server_clock import server_time

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


async def test_a_clock_that_is_ahead_calls_no_worker_gone(temporal: WorkflowEnvironment) -> None:
    """A queue that was asked for work just now is polled, whatever time its reader has; one that
    was asked for none of late is not.
    """

    def ahead() -> float:
        return time.time() + 3600

    # It asks for work on a queue of its own.
    with patch("secrets.token_hex", lambda _: "of-this-test"):
        before, told, after = await server_time(temporal.client)
    assert told is not None and before - 5 < told < after + 5
    queue = "holdfast-clock-of-this-test"
    assert await pollers.is_polled(temporal.client, queue, ahead)
    with patch.object(pollers, "POLLED_SECONDS", 0.0):
        assert not await pollers.is_polled(temporal.client, queue, ahead)
    assert not await pollers.is_polled(temporal.client, "nobody-asks-here", ahead)
