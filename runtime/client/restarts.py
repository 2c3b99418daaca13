"""Requests to an embedded server that may be killed, and started again, at any moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from temporalio.service import RPCError

from runtime.server.away import is_away

Answer = TypeVar("Answer")

TRIES = 6
"""How often a server that is not there is asked: the SDK asks for ten seconds each time, and a busy
machine takes longer than that to start one.
"""


async def through_restarts(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """What ``ask`` comes to, which may be asked any number of times; it waits for a server that is
    started again.

    Raises:
        RPCError: if the server stays away, or answers with an error.
    """
    for _ in range(TRIES - 1):
        try:
            return await ask()
        except RPCError as error:
            # Any other answer is a server's that is there, and it would be the same the next time.
            if not is_away(error):
                raise
    return await ask()
