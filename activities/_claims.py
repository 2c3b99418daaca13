"""Claims on work that is to be done once, however many workers want its result: objects of a store,
and no clock in common.

::

    KEY.claims/00000001    {"owner": ..., "over": false}
    KEY.claims/00000002    ...

The newest claim counts, and the next number is written if absent, so one of several takes it. The
owner writes a further claim now and then while it works, and one that is ``over`` if it gives up.
Who waits measures by a clock of its own how long the newest claim has stood: after ``lease``
seconds its owner counts as dead, and the first to write the next claim goes on in its stead. So a
worker that dies holds nobody up for longer than that; one that only stalled may do the work a
second time, which costs money and changes nothing, since the result is written if absent too.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from runtime.archive.shared_summaries import CLAIMS
from runtime.archive.stores import ObjectStore
from runtime.base.digests import canonical_json
from runtime.base.errors import ArchiveError


@dataclass(frozen=True)
class Times:
    """Seconds until an owner that says nothing counts as dead, between two signs of life, and
    between two looks of who waits.
    """

    lease: float = 60.0
    beat: float = 20.0
    look: float = 1.0


@dataclass(frozen=True)
class Claim:
    """The newest claim. Number 0 is that nobody has claimed anything."""

    number: int = 0
    owner: str = ""
    over: bool = True


class Claims:
    """The claims on the work whose result goes to ``key``, as ``owner`` makes them.

    A later attempt of one owner is the same.
    """

    def __init__(self, store: ObjectStore, key: str, owner: str, times: Times) -> None:
        self._store = store
        self._prefix = f"{key}{CLAIMS}"
        self._owner = owner
        self._times = times

    @asynccontextmanager
    async def held(self, done: Callable[[], Awaitable[bool]]) -> AsyncIterator[bool]:
        """True once this owner is to do the work, False as soon as ``done`` says that somebody has.

        Raises:
            ArchiveError: if the store cannot be read or written.
        """
        number = await self._turn(done)
        if number is None:
            yield False
            return
        beating = asyncio.create_task(self._beat(number))
        try:
            yield True
        except BaseException:
            beating.cancel()
            # Others need not wait for a sign of life that will not come. Where the store is out of
            # reach they do, and what went wrong first is what is told.
            with contextlib.suppress(ArchiveError):
                await asyncio.shield(asyncio.to_thread(self._give_up))
            raise
        finally:
            beating.cancel()

    def newest(self) -> Claim:
        """The claim that counts."""
        keys = list(self._store.list(self._prefix))
        if not keys:
            return Claim()
        said = json.loads(self._store.get(keys[-1]))
        # Numbers have eight digits, so the last key in the order of the store is the newest.
        return Claim(
            number=int(keys[-1].removeprefix(self._prefix)), owner=said["owner"], over=said["over"]
        )

    async def _turn(self, done: Callable[[], Awaitable[bool]]) -> int | None:
        """The number of this owner's claim; None if the work is done."""
        seen, since = Claim(), time.monotonic()
        while not await done():
            newest = await asyncio.to_thread(self.newest)
            # A clock of this process alone: those of several machines need not agree.
            if newest != seen:
                seen, since = newest, time.monotonic()
            dead = time.monotonic() - since >= self._times.lease
            if newest.over or newest.owner == self._owner or dead:
                number = newest.number + 1
                # Another was faster: its claim counts, and is looked at.
                if not await asyncio.to_thread(self._put, number, False):
                    continue
                # The owner before may have finished between the two looks.
                return None if await done() else number
            await asyncio.sleep(self._times.look)
        return None

    async def _beat(self, number: int) -> None:
        while True:
            await asyncio.sleep(self._times.beat)
            # A store that is out of reach for a moment costs a sign of life, not the work.
            with contextlib.suppress(ArchiveError):
                # Another has taken the next number: this owner counted as dead, and its claim is
                # gone.
                if not await asyncio.to_thread(self._put, number + 1, False):
                    return
                number += 1

    def _give_up(self) -> None:
        # Only an own claim: after a lease that ran out the newest is another's.
        newest = self.newest()
        if newest.owner == self._owner and not newest.over:
            self._put(newest.number + 1, True)

    def _put(self, number: int, over: bool) -> bool:
        said = canonical_json({"owner": self._owner, "over": over})
        return self._store.put_if_absent(f"{self._prefix}{number:08d}", said)
