"""How a process that uses temporalio begins to, and how it ends.

temporalio's own threads hand results over and then give the interpreter's lock back. Where the
interpreter is finalized in between, such a thread aborts the process, after all its work is done:
13 of 100 short scripts on a busy machine (``docs/facts.md``). The commands end with ``os._exit``; a
user's script that runs jobs through ``holdfast`` ends as Python does.
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable
from functools import cache

HAND_OVER_SECONDS = 0.1
"""How long the lock is left to those threads: each has waited for it already, and needs it for some
microseconds.
"""


_before: list[Callable[[], None]] = []
"""What is done before a connection is made."""


def before_connecting(act: Callable[[], None]) -> None:
    """Have ``act`` done before each connection of this process, which need not make one."""
    _before.append(act)


def begin_connecting() -> None:
    """Called before a connection is made."""
    for act in _before:
        act()
    leave_in_order()


@cache
def leave_in_order() -> None:
    """From now on, this process lets temporalio's threads go before the interpreter is finalized.

    The second call does nothing.
    """
    atexit.register(time.sleep, HAND_OVER_SECONDS)
