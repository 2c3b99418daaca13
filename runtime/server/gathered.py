"""Asking something far away for many things, some at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

AT_A_TIME = 16
"""Questions under way at a time: they wait for the network, and the server has other work too."""

A = TypeVar("A")
B = TypeVar("B")


async def gathered(act: Callable[[A], Awaitable[B]], items: Iterable[A]) -> list[B]:
    """What ``act`` gives for each of the items, in their order.

    Raises:
        Exception: what the first of them that fails raises.
    """
    turns = asyncio.Semaphore(AT_A_TIME)

    async def one(item: A) -> B:
        async with turns:
            return await act(item)

    return await asyncio.gather(*(one(item) for item in items))
