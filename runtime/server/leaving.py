"""How a process that used temporalio ends.

temporalio's own threads hand results over and then give the interpreter's lock back. Where the
interpreter is finalized in between, such a thread aborts the process, after all its work is done:
13 of 100 short scripts on a busy machine (``docs/facts.md``). The commands end with ``os._exit``; a
user's script that runs jobs through ``holdfast`` ends as Python does.
"""

from __future__ import annotations

import atexit
import time
from functools import cache

HAND_OVER_SECONDS = 0.1
"""How long the lock is left to those threads: each has waited for it already, and needs it for some
microseconds.
"""


@cache
def leave_in_order() -> None:
    """From now on, this process lets temporalio's threads go before the interpreter is finalized.

    Called before a connection is made; the second call does nothing.
    """
    atexit.register(time.sleep, HAND_OVER_SECONDS)
