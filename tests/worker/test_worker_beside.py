"""What works beside a block ends the block when it fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import pytest
from temporalio.testing import WorkflowEnvironment

from runtime.archive.stores import open_store
from runtime.base.errors import ServerError
from runtime.worker import serving
from runtime.worker import worker as workers
from runtime.worker.beside import beside, stopped
from runtime.worker.serving import BatchWorkers
from runtime.worker.worker import make_queue_worker, running_worker
from tests.eventually import SECONDS

QUEUE = "model:one/*@archive"


async def failing() -> NoReturn:
    raise ServerError("no worker is left")


async def endless() -> NoReturn:
    while True:
        await asyncio.Event().wait()


async def test_work_that_fails_ends_its_block_and_nothing_after_it() -> None:
    """What ended the work is raised, and the task of the block counts as cancelled no more."""
    with pytest.raises(ServerError, match="no worker is left"):
        async with asyncio.timeout(SECONDS), beside(failing(), "work"):
            await asyncio.Event().wait()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_block_that_is_cancelled_stays_cancelled() -> None:
    """By whoever awaits it; the work is stopped with it."""
    begun = asyncio.Event()

    async def block() -> None:
        async with beside(endless(), "work that is stopped"):
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(block())
    await begun.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert "work that is stopped" not in {task.get_name() for task in asyncio.all_tasks()}


async def test_whoever_stops_a_task_may_be_cancelled_meanwhile() -> None:
    """It is not taken for the end of the task, which takes its time."""
    begun, ending, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await ended.wait()

    task = asyncio.create_task(slow())
    await begun.wait()
    stopping = asyncio.create_task(stopped(task))
    await ending.wait()
    stopping.cancel()
    await asyncio.wait({stopping})
    assert stopping.cancelled()
    ended.set()
    await asyncio.wait({task})


@pytest.mark.server
@pytest.mark.asyncio(loop_scope="session")
async def test_a_limited_queue_whose_worker_dies_is_told(
    temporal: WorkflowEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block ends, whatever it waits for: calls of that queue would wait for ever.

    A client takes no second worker of one queue: so the first ends the other.
    """
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    store = open_store(str(tmp_path / "archive"))
    with pytest.raises(ServerError, match=r"the worker of model:one/\*@archive stopped: "):
        async with (
            asyncio.timeout(SECONDS),
            make_queue_worker(temporal.client, store, QUEUE),
            running_worker(temporal.client, store, limited=[QUEUE]),
        ):
            await asyncio.Event().wait()


class Draining:
    """Workers that end once all ``others`` are ending too."""

    def __init__(self, others: asyncio.Barrier) -> None:
        self._others = others

    async def close(self) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                await self._others.wait()
        except TimeoutError:
            await self._others.abort()
            raise

    shutdown = close

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def want(self, _: Any) -> list[Any]:
        return []

    async def follow(self, *_: Any) -> NoReturn:
        await endless()


@asynccontextmanager
async def nothing(*_: Any) -> AsyncIterator[str]:
    yield "identity"


def stand_in(module: ModuleType, made: Draining, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what ``module`` makes be ``made``, without a server."""
    for name in ("limited_queues", "role_workers", "make_worker"):
        monkeypatch.setattr(module, name, lambda *_, **__: made)
    for name in ("tidied", "present"):
        monkeypatch.setattr(module, name, nothing)
    monkeypatch.setattr(module, "warm_up", lambda _: None)


async def test_workers_of_one_process_drain_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that waited for another to drain would take calls until then, and the pod's time to end
    would be over before it had.
    """
    made = Draining(asyncio.Barrier(3))
    stand_in(workers, made, monkeypatch)
    store = open_store(str(tmp_path / "archive"))
    nowhere: Any = None
    async with running_worker(nowhere, store):
        pass


async def test_workers_of_all_batches_drain_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of one do."""
    made: Any = Draining(asyncio.Barrier(3))
    stand_in(serving, made, monkeypatch)
    begun = asyncio.Event()

    async def look(batches: BatchWorkers, *_: Any) -> None:
        batches._running["queue"] = made, asyncio.create_task(asyncio.sleep(0))
        begun.set()

    monkeypatch.setattr(BatchWorkers, "_look", look)
    nowhere: Any = None
    task = asyncio.create_task(
        BatchWorkers(nowhere, open_store(str(tmp_path / "archive")), print).serve()
    )
    await begun.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
