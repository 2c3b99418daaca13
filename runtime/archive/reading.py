"""Reading many jobs of an archive that may be far away."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

AT_A_TIME = 16
"""Jobs that are read at a time."""

AHEAD = 64
"""Jobs that are read before their turn, at most."""

A = TypeVar("A")
B = TypeVar("B")


def read_ahead(names: Iterable[A], read: Callable[[A], B]) -> Iterator[B]:
    """``read`` of each name, in their order, with few of them in memory."""
    due: deque[Future[B]] = deque()
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for name in names:
            due.append(pool.submit(read, name))
            if len(due) > AHEAD:
                yield due.popleft().result()
        while due:
            yield due.popleft().result()
