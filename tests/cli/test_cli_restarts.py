"""A server that is started again while a command asks it for something."""

from __future__ import annotations

import pytest
from temporalio.service import RPCError, RPCStatusCode

from runtime.client.restarts import TRIES, through_restarts


class Server:
    """Answers with an error so many times, then as it is asked."""

    def __init__(self, status: RPCStatusCode, failures: int, said: str = "away") -> None:
        self.status = status
        self.said = said
        self.failures = failures
        self.asked = 0

    async def answer(self) -> str:
        """The next answer."""
        self.asked += 1
        if self.asked <= self.failures:
            raise RPCError(self.said, self.status, b"")
        return "submitted"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (RPCStatusCode.UNAVAILABLE, "tcp connect error"),
        # What the SDK says of a request that the server's end has broken off.
        (RPCStatusCode.UNKNOWN, "transport error"),
    ],
)
async def test_a_server_that_is_started_again_is_waited_for(
    status: RPCStatusCode, said: str
) -> None:
    """On a busy machine that takes longer than one request waits."""
    server = Server(status, TRIES - 1, said)
    assert await through_restarts(server.answer) == "submitted"
    assert server.asked == TRIES


@pytest.mark.parametrize(
    ("status", "asked"),
    [
        (RPCStatusCode.UNAVAILABLE, TRIES),
        (RPCStatusCode.PERMISSION_DENIED, 1),
        (RPCStatusCode.UNKNOWN, 1),
    ],
)
async def test_what_no_start_mends_is_an_error(status: RPCStatusCode, asked: int) -> None:
    """A server that stays away is asked a bounded number of times, one that refuses once."""
    server = Server(status, 99)
    with pytest.raises(RPCError):
        await through_restarts(server.answer)
    assert server.asked == asked
