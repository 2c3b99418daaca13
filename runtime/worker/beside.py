"""Work that goes on beside a block, and without which the block would wait for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, NoReturn], name: str) -> AsyncIterator[None]:
    """Have ``work`` go on within the block, and stop it at the block's end.

    If it ends by itself, the block is cancelled, as the SDK's ``Worker`` does, and what ended the
    work is raised in place of the cancellation.
    """
    block = asyncio.current_task()
    assert block is not None
    within, cut = True, False

    def end_block(_: asyncio.Task[NoReturn]) -> None:
        nonlocal cut
        # Once the block is left, a cancellation would hit whatever comes after it.
        if within:
            cut = block.cancel()

    task = asyncio.create_task(work, name=name)
    task.add_done_callback(end_block)
    try:
        yield
    finally:
        within = False
        if cut:
            block.uncancel()
        await stopped(task)


@dataclass
class Leaving:
    """Ends that take their time, beside each other: what waited for another to drain would take
    work until then.
    """

    _ends: list[asyncio.Task[None]] = field(default_factory=list)

    def leave(self, *ends: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin them."""
        self._ends.extend(asyncio.create_task(end()) for end in ends)

    async def left(self) -> None:
        """Wait for all of them."""
        await asyncio.gather(*self._ends)


async def stopped(task: asyncio.Task[Any]) -> None:
    """Stop a task, and wait until it has. Raises what ended it before."""
    task.cancel()
    # Not awaited itself: its cancellation could not be told from that of whoever waits here.
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()
