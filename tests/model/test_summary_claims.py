"""Claims: of several workers that want one summary one writes it, and none waits for a dead one for
ever.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from activities import _claims
from activities._claims import Claims, Times
from runtime.archive.stores import MemoryStore
from runtime.base.errors import ArchiveError

KEY = "_holdfast/summaries/1"
QUICK = Times(lease=0.2, beat=0.05, look=0.01)
PATIENT = Times(lease=600.0, beat=200.0, look=0.01)


class Work:
    """What is to be done once, and how often it was."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.times = 0
        self.go_on = asyncio.Event()
        self.begun = asyncio.Event()

    async def done(self) -> bool:
        return KEY in list(self.store.list(KEY)) and self.store.get(KEY) == b"done"

    async def by(self, owner: str, times: Times) -> bool:
        """Do it, unless another has; whether it was this owner."""
        async with Claims(self.store, KEY, owner, times).held(self.done) as mine:
            if mine:
                self.times += 1
                self.begun.set()
                await self.go_on.wait()
                self.store.put_if_absent(KEY, b"done")
            return mine


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def newest(store: MemoryStore) -> tuple[str, bool]:
    """The owner of the newest claim, and whether it is over."""
    claim = Claims(store, KEY, "", QUICK).newest()
    return claim.owner, claim.over


async def test_one_of_many_does_the_work(store: MemoryStore) -> None:
    """The others wait until it is done."""
    work = Work(store)
    owners = [asyncio.create_task(work.by(f"worker-{n}", PATIENT)) for n in range(8)]
    await work.begun.wait()
    work.go_on.set()
    assert sorted(await asyncio.gather(*owners)) == [False] * 7 + [True]
    assert work.times == 1


async def test_an_owner_that_lives_is_waited_for(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it takes: each sign of life is a claim with the next number."""
    work, claims = Work(store), Claims(store, KEY, "", QUICK)
    # Of who waits: on a busy machine the time of a lease may pass without a sign of life.
    clock = SimpleNamespace(monotonic=lambda: claims.newest().number * QUICK.beat)
    monkeypatch.setattr(_claims, "time", clock)
    slow = asyncio.create_task(work.by("slow", QUICK))
    await work.begun.wait()
    waiting = asyncio.create_task(work.by("waiting", QUICK))
    while claims.newest().number < 10:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert not waiting.done()
    work.go_on.set()
    assert await asyncio.gather(slow, waiting) == [True, False]


async def test_a_dead_owner_is_followed_by_one_other(store: MemoryStore) -> None:
    """When its claim has stood for as long as a lease, by the clock of who waits."""
    Claims(store, KEY, "dead", QUICK)._put(1, False)
    work = Work(store)
    work.go_on.set()
    owners = [work.by(f"worker-{n}", QUICK) for n in range(4)]
    assert sorted(await asyncio.gather(*owners)) == [False] * 3 + [True]
    assert work.times == 1


async def test_an_owner_that_gives_up_says_so(store: MemoryStore) -> None:
    """The next goes on at once, though the lease would last."""
    work = Work(store)
    first = asyncio.create_task(work.by("first", PATIENT))
    await work.begun.wait()
    second = asyncio.create_task(work.by("second", PATIENT))
    first.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await first
    work.go_on.set()
    assert await second
    assert work.times == 2
    assert newest(store) == ("second", False)


class Unreachable(MemoryStore):
    """A store that is out of reach once its ``outage`` has begun."""

    outage = False

    def list(self, prefix: str) -> Iterator[str]:
        if self.outage:
            raise ArchiveError("the archive is out of reach")
        return super().list(prefix)


async def test_what_went_wrong_is_told_also_where_giving_up_fails() -> None:
    """A model that refuses says by that whether it is worth asking again."""
    store = Unreachable()
    with pytest.raises(LookupError, match="the model refuses"):
        async with Claims(store, KEY, "worker", PATIENT).held(Work(store).done):
            store.outage = True
            raise LookupError("the model refuses")


async def test_a_later_attempt_of_an_owner_does_not_wait_for_itself(store: MemoryStore) -> None:
    """An activity that is tried again, since its worker died, takes up its claim."""
    Claims(store, KEY, "job/payload-1", PATIENT)._put(1, False)
    work = Work(store)
    work.go_on.set()
    assert await work.by("job/payload-1", PATIENT)


async def test_what_was_done_between_two_looks_is_not_done_again(store: MemoryStore) -> None:
    """Who takes a claim over looks once more."""
    work = Work(store)
    answers = iter([False, True])

    async def done() -> bool:
        return next(answers)

    async with Claims(store, KEY, "late", PATIENT).held(done) as mine:
        assert not mine
    assert work.times == 0
