"""What works beside a block ends the block when it fails."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NoReturn

import pytest
from temporalio.testing import WorkflowEnvironment

from runtime.archive.stores import open_store
from runtime.base.errors import ServerError
from runtime.worker.beside import beside, stopped
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
