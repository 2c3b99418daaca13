"""A server that is started again while a command asks it for something."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from runtime.archive.stores import open_store
from runtime.client import watch
from runtime.client.control import Control
from runtime.client.restarts import TRIES, through_restarts
from runtime.client.watch import MOST_TOLD, until_told
from workflows.messages import BatchNews


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


@dataclass(frozen=True)
class Batch(Control):
    """A client's side of a batch that has told of its end, on a server that is away at times."""

    server: Server

    async def batch_news(self, batch: str, known: int) -> BatchNews | None:
        """None: it does not run."""
        await self.server.answer()
        return None


@pytest.mark.parametrize(
    ("status", "asked"), [(RPCStatusCode.UNAVAILABLE, 2), (RPCStatusCode.PERMISSION_DENIED, 1)]
)
async def test_a_server_that_is_away_while_an_end_is_told_is_waited_for(
    tmp_path: Path, status: RPCStatusCode, asked: int
) -> None:
    """All jobs have ended: ``run`` does not fail for it. What a server refuses is an error."""
    server = Server(status, 1)
    client = await Client.connect("127.0.0.1:1", lazy=True)
    batch = Batch(client, open_store(str(tmp_path)), server)
    with pytest.raises(RPCError) if asked == 1 else nullcontext():
        await until_told(batch, "night", frozenset(), asyncio.Event())
    assert server.asked == asked


@dataclass(frozen=True)
class Behind(Control):
    """A client's side of a batch that hears late of the ends of its jobs ``a`` and ``b``."""

    news: list[BatchNews | None]

    async def batch_news(self, batch: str, known: int) -> BatchNews | None:
        """The next of what it says, and the last again and again."""
        return self.news.pop(0) if len(self.news) > 1 else self.news[0]

    async def batch_end(self, batch: str) -> None:
        """It has not ended yet."""
        await asyncio.Event().wait()


SILENT, BOTH, OTHERS = BatchNews(), BatchNews(open=("a", "b")), BatchNews(open=("a", "c"))


@pytest.mark.parametrize(
    ("news", "left"),
    [
        # It has not heard of both, then of one, no worker answers, it has ended.
        ([BOTH, BatchNews(open=("b",)), SILENT, SILENT, None, OTHERS], [OTHERS]),
        # Another command's job runs, or waits.
        ([BOTH, OTHERS, None], [None]),
        ([BatchNews(open=("a",), waiting=1), None], [None]),
        # However that came about: it is not waited for for ever.
        ([*[BOTH] * (MOST_TOLD + 2), None], [BOTH, BOTH, None]),
    ],
)
async def test_nobody_leaves_before_the_batch_has_heard_of_its_last_end(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    news: list[BatchNews | None],
    left: list[BatchNews | None],
) -> None:
    """A run that heard of an end from the job itself left a batch that stayed open, as nobody was
    left to tell it, and ``watch`` waited for that for ever.
    """
    monkeypatch.setattr(watch, "POLL_SECONDS", 0.001)
    client = await Client.connect("127.0.0.1:1", lazy=True)
    batch = Behind(client, open_store(str(tmp_path)), news)
    await until_told(batch, "night", frozenset({"a", "b"}), asyncio.Event())
    assert batch.news == left


async def test_who_asks_to_stop_waits_for_no_batch(tmp_path: Path) -> None:
    """Ctrl-C, while it has not heard of the last end."""
    client = await Client.connect("127.0.0.1:1", lazy=True)
    batch, asked = Behind(client, open_store(str(tmp_path)), [BOTH]), asyncio.Event()
    waiting = asyncio.create_task(until_told(batch, "night", frozenset({"a", "b"}), asked))
    await asyncio.sleep(0)
    asked.set()
    await waiting
