"""Processes that are forked from one that has loaded everything."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from runtime.worker.nursery import NURSERY, WORKER, Forked, Nursery
from tests.eventually import eventually
from tests.kill.processes import name_of

PROGRAM = """
import os, signal, socket, sys
from runtime.worker.nursery import forks

channel = socket.socket(fileno=int(sys.argv[1]))
match sys.argv[2]:
    case "cannot-load":
        sys.exit(2)
    case "loads":
        # For as long as nobody writes there.
        open(sys.argv[3]).read()
    case "forks-once":
        fork, room = os.fork, [True]

        def forked():
            if not room:
                raise BlockingIOError(11, "Resource temporarily unavailable")
            room.pop()
            return fork()

        os.fork = forked
forks(channel)
signal.signal(signal.SIGTERM, lambda *_: os._exit(15))
with open(os.environ["TOLD"], "w") as told:
    print(os.getpgrp(), os.getppid(), sorted(map(int, os.listdir("/proc/self/fd"))), file=told)
if code := os.environ.get("CODE"):
    os._exit(int(code))
signal.pause()
"""
"""A nursery whose processes tell of themselves, and end with CODE, or when they are told to."""


@asynccontextmanager
async def nursery(*arguments: str) -> AsyncIterator[Nursery]:
    """A nursery of the program; nothing of it is left after the block."""
    made = Nursery([sys.executable, "-c", PROGRAM], arguments)
    try:
        yield made
    finally:
        await asyncio.wait_for(made.drain(60), 60)


@asynccontextmanager
async def loading(folder: Path) -> AsyncIterator[tuple[Nursery, asyncio.Task[Forked], int]]:
    """A nursery that loads until a descriptor is closed, and has been asked for a process, which
    would tell of itself in ``told``.
    """
    gate = folder / "gate"
    os.mkfifo(gate)
    async with nursery("loads", str(gate)) as made:
        asked = asyncio.create_task(made.start({"TOLD": str(folder / "told")}))
        # It has begun when it reads there.
        yield made, asked, await asyncio.to_thread(os.open, gate, os.O_WRONLY)


async def told(path: Path) -> list[str]:
    """What a process says of itself."""
    await eventually(lambda: path.exists() and path.read_text().endswith("\n"), "it has told")
    return path.read_text().split(maxsplit=2)  # noqa: ASYNC240


async def test_they_are_forked_from_one_and_their_ends_are_told(tmp_path: Path) -> None:
    """Each heads a session of its own, has its own variables, and none of the nursery's files."""
    async with nursery("ready") as made:
        one, other = tmp_path / "one", tmp_path / "other"
        processes = await asyncio.gather(
            made.start({"TOLD": str(one), "CODE": "7"}), made.start({"TOLD": str(other)})
        )
        assert await processes[0].wait() == 7
        groups = [await told(path) for path in (one, other)]
        assert [int(group[0]) for group in groups] == [process.pid for process in processes]
        assert groups[0][1] == groups[1][1] != str(os.getpid())
        assert (name_of(int(groups[0][1])), name_of(processes[1].pid)) == (NURSERY, WORKER)
        # Its streams, the file that it writes, and the directory that it lists.
        assert [group[2].strip() for group in groups] == ["[0, 1, 2, 3, 4]"] * 2
        processes[1].send_signal(signal.SIGKILL)
        assert await processes[1].wait() == -signal.SIGKILL
        # Its id may be another's by now: nothing is sent there.
        processes[1].send_signal(signal.SIGKILL)


async def test_when_it_is_killed_others_are_forked_from_another(tmp_path: Path) -> None:
    """Its processes end with it: nobody could tell how they do."""
    async with nursery("ready") as made:
        first = await made.start({"TOLD": str(tmp_path / "first")})
        parent = int((await told(tmp_path / "first"))[1])
        os.kill(parent, signal.SIGKILL)
        assert await first.wait() == -signal.SIGKILL
        second = await made.start({"TOLD": str(tmp_path / "second")})
        assert int((await told(tmp_path / "second"))[1]) != parent
    assert await second.wait() == 15


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_waits_for_its_processes_to_drain(tmp_path: Path, number: int) -> None:
    """A signal that all processes are sent ends it no sooner than they end."""
    async with nursery("ready") as made:
        process = await made.start({"TOLD": str(tmp_path / "told")})
        parent = int((await told(tmp_path / "told"))[1])
        os.kill(parent, number)
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 15
        assert name_of(parent) == NURSERY
    assert name_of(parent) == ""


async def test_what_is_sent_right_after_the_fork_arrives(tmp_path: Path) -> None:
    """It was lost where the process had not come to heed signals."""
    async with nursery("ready") as made:
        for number in range(10):
            process = await made.start({"TOLD": str(tmp_path / str(number))})
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(60):
                # By the handler of the program, or before that is in place.
                assert await process.wait() in {15, -signal.SIGTERM}


async def test_one_that_cannot_fork_has_others_work_on(tmp_path: Path) -> None:
    """Who asked is told of a process that has ended; the next one is tried again."""
    async with nursery("forks-once") as made:
        first = await made.start({"TOLD": str(tmp_path / "first")})
        await told(tmp_path / "first")
        assert await (await made.start({})).wait() == 1
        assert await (await made.start({})).wait() == 1
        assert name_of(first.pid) == WORKER
    assert await first.wait() == 15


async def test_one_that_cannot_load_is_told_of(tmp_path: Path) -> None:
    """By its exit code, for each process that it was asked for."""
    async with nursery("cannot-load") as made:
        processes = await asyncio.gather(*(made.start({}) for _ in range(3)))
        assert [await process.wait() for process in processes] == [2, 2, 2]


async def test_one_that_still_loads_ends_at_once(tmp_path: Path) -> None:
    """Who waits for a process of it is told that there is none."""
    async with loading(tmp_path) as (made, asked, gate):
        await made.drain(60)
        assert await (await asked).wait() == -signal.SIGKILL
    os.close(gate)
    assert not (tmp_path / "told").exists()


async def test_a_process_that_nobody_waits_for_any_more_drains(tmp_path: Path) -> None:
    """It was asked for while the nursery loaded."""
    async with loading(tmp_path) as (made, asked, gate):
        asked.cancel()
        wanted = asyncio.create_task(made.start({"TOLD": str(tmp_path / "wanted")}))
        await asyncio.sleep(0)
        os.close(gate)
        forked = await wanted
        await told(tmp_path / "wanted")
        forked.send_signal(signal.SIGTERM)
        assert await forked.wait() == 15
        # The nursery ends with the last of its processes.
        await asyncio.wait_for(made.drain(60), 60)
