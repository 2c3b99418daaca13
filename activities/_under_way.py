"""The model calls that this process is making, so that one can be broken off at once.

Temporal tells an activity that it is cancelled with its next heartbeat: until then a provider would
be paid.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

_calls: dict[tuple[str, str], UnderWay] = {}


class BrokenOff(Exception):
    """Nobody waits for the call any more."""


class UnderWay:
    """One call, from its beginning until what came of it is archived."""

    def __init__(self) -> None:
        self._broken = False
        self._asking: asyncio.Task[Any] | None = None
        self._over = asyncio.Event()

    async def asking(self, asked: Coroutine[Any, Any, T]) -> T:
        """The answer.

        Raises:
            BrokenOff: if the call was broken off, before it was made or since.
        """
        if self._broken:
            asked.close()
            raise BrokenOff
        task = self._asking = asyncio.current_task()
        try:
            return await asked
        except asyncio.CancelledError:
            # Uncancelled, as by asyncio's timeouts: but for that of ``end``, the activity goes on,
            # and what came until now is archived.
            if self._broken and task is not None and not task.uncancel():
                raise BrokenOff from None
            raise
        finally:
            self._asking = None

    async def end(self) -> None:
        """Break the call off, and wait until what came of it is archived."""
        if self._asking is not None and not self._broken:
            self._asking.cancel()
        self._broken = True
        await self._over.wait()

    def ended(self) -> None:
        """What came of it is archived."""
        self._over.set()


@contextmanager
def under_way(run: str, activity: str) -> Iterator[UnderWay]:
    """The call that ``activity`` of ``run`` makes, or of its side run."""
    call = _calls[run, activity] = UnderWay()
    try:
        yield call
    finally:
        call.ended()
        if _calls.get((run, activity)) is call:
            del _calls[run, activity]


async def break_off(run: str, activity: str) -> None:
    """End the call, if it is under way in this process."""
    if (call := _calls.get((run, activity))) is not None:
        await call.end()
