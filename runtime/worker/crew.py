"""Several worker processes on one host: more than one core's worth of work.

All are forked from one that has loaded what they need (``runtime/worker/nursery.py``). A process
that ends is started again, after pauses that grow while it keeps ending at once. All end with the
one that started them: each holds the reading end of a pipe, and leaves when nobody holds the other
end any more, however that came about (``leave_with_parent``).
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from runtime.base.errors import InputError
from runtime.base.own_process import command
from runtime.base.roles import EVERY, Roles, told
from runtime.worker.nursery import Nursery

MEMBER = "runtime.cli.member"
"""The module whose ``main`` is a crew's nursery, and in what it forks a process of the crew."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a process is started again that ended at once, and so after many times."""

STEADY = 60.0
"""Seconds after which a process is taken for one that did not end at once."""

PATIENCE = 40.0
"""Seconds that processes have to drain, which takes them half of that at most."""

JOBS_EACH = 100
"""Jobs for which it pays to start another process, which takes seconds of a core."""

MOST = 16
"""Processes that are started where nobody said how many."""


@dataclass
class Crew:
    """Processes that each run the command ``holdfast`` with ``arguments``.

    ``tell`` is given a line for each that ends by itself. What all of them load is that of workers
    of ``roles``.
    """

    arguments: Sequence[str]
    tell: Callable[[str], None]
    environment: Callable[[int], Mapping[str, str]] = lambda number: {}
    """More variables of the process of that number, from 1."""
    roles: Roles = EVERY

    @cached_property
    def _nursery(self) -> Nursery:
        return Nursery(command(MEMBER, path=True), [told(self.roles), *self.arguments])

    async def load(self) -> None:
        """Have what they need loaded from now on: there will probably be work for them."""
        await self._nursery.begin()

    async def work(self, size: int) -> int:
        """Keep so many running until cancelled, and then let them drain.

        Returns early, with the exit code, if one ends that no other try would help.
        """
        keeping = [asyncio.create_task(self._keep(number + 1)) for number in range(size)]
        try:
            done, _ = await asyncio.wait(keeping, return_when=asyncio.FIRST_COMPLETED)
            return next(iter(done)).result()
        finally:
            for task in keeping:
                task.cancel()
            await asyncio.gather(*keeping, return_exceptions=True)
            await self.close()

    async def close(self) -> None:
        """Let them drain, and nothing stay of them."""
        # What has not drained by then is done again by others; left alone it might never end.
        await self._nursery.drain(PATIENCE)

    def kill(self) -> None:
        """End them at once: what they are doing is done again by others."""
        self._nursery.kill()

    async def _keep(self, number: int) -> int:
        pause = FIRST_PAUSE
        while True:
            began = time.monotonic()
            process = await self._nursery.start(self.environment(number))
            code = await process.wait()
            # What it was given is what all others were given, and it would end so each time.
            if code == InputError.exit_code:
                self.tell(f"worker {number} ended (exit code {code}), and so would any other")
                return code
            if time.monotonic() - began >= STEADY:
                pause = FIRST_PAUSE
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            self.tell(f"worker {number} ended ({how}); it is started again in {pause:.0f} s")
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def leave_with_parent() -> None:
    """Have this process drain, and end, when the process that started it is gone."""
    _member.set()
    threading.Thread(target=_wait_for_parent, name="parent", daemon=True).start()


def is_member() -> bool:
    """Whether this process is one of a crew."""
    return _member.is_set()


_member = threading.Event()


def _wait_for_parent() -> None:
    with suppress(OSError):
        while os.read(0, 4096):
            pass
    os.kill(os.getpid(), signal.SIGTERM)
    # If draining hangs, nobody is left who could give the second signal.
    time.sleep(PATIENCE)
    os._exit(1)


def fitting_size(jobs: int | None = None, *, shared: bool) -> int:
    """How many processes pay for so many jobs (None: for any number): one for each core, or two for
    three, rounded up, where these are ``shared`` with a server, which takes half of what they do.
    """
    cores = _cores()
    size = math.ceil(cores * 2 / 3) if shared else cores
    if jobs is not None:
        # The first one is started for however few.
        size = min(size, 1 + jobs // JOBS_EACH)
    return max(1, min(size, MOST))


def _cores() -> int:
    """How many cores this process may use: a container is given a share of the machine's."""
    if sys.platform != "linux":
        return os.cpu_count() or 1
    cores = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):
        quota, period = _SHARE.read_text(encoding="ascii").split()
        return min(cores, math.ceil(int(quota) / int(period)))
    return cores


_SHARE = Path("/sys/fs/cgroup/cpu.max")
"""What the kernel gives this container in a period, both in microseconds; ``max``: everything."""
