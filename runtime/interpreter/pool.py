"""The one seam to Monty: a pool of sandboxed interpreter processes.

A session is bytes between statements (``dump``), so no process is held across an ``await`` (DESIGN.md section 4). The pool
holds as many processes as there are threads that run workflow tasks: a checkout then never waits, and the time that a
statement is given is not spent in a queue.
"""

from __future__ import annotations

import atexit
import threading
from typing import Final

from pydantic_monty import Monty, MontySession, OSPolicy, ResourceLimits

PROCESSES: Final = 8
"""Interpreter processes, and workflow tasks at a time, in one worker."""

HARD_SECONDS: Final = 1.7
"""What the interpreter stops a statement at: under the SDK's deadlock detector (2 s an activation)."""

KILL_SECONDS: Final = 1.8
"""When a process that does not stop by itself is killed."""

DECLARED_SECONDS: Final = 1.0
"""A statement that took longer when live is declared a timeout; the rest is room for a slower replay."""

MAX_MEMORY_BYTES: Final = 64 << 20
MAX_RECURSION: Final = 200
MAX_SUSPENSIONS: Final = 10_000

_lock = threading.Lock()
_pool: Monty | None = None


def limits() -> ResourceLimits:
    """The limits of one statement. All but the time count deterministically."""
    return ResourceLimits(
        max_feed_duration_secs=HARD_SECONDS,
        max_memory=MAX_MEMORY_BYTES,
        max_recursion_depth=MAX_RECURSION,
        max_suspensions=MAX_SUSPENSIONS,
    )


def _shared() -> Monty:
    global _pool
    with _lock:
        if _pool is None:
            _pool = Monty(min_processes=1, max_processes=PROCESSES, request_timeout=KILL_SECONDS)
            _pool.__enter__()
            atexit.register(close)
        return _pool


def close() -> None:
    """Stop the interpreter processes. The next checkout starts new ones."""
    global _pool
    with _lock:
        pool, _pool = _pool, None
    if pool is not None:
        pool.__exit__(None, None, None)


def session(*, seed: str = "") -> MontySession:
    """A session for running statements. ``seed`` starts ``random``; the clock asks the host; sleeping takes no time."""
    policy: OSPolicy = {"datetime": "call_host", "sleep": "zero", "timezone": "utc", "random_start": {"seed": seed}}
    return _shared().checkout(limits=limits(), os_policy=policy)


def checking_session(stubs: str) -> MontySession:
    """A session whose first feed is type-checked against ``stubs`` and never run past its first name."""
    return _shared().checkout(limits=limits(), type_check=True, type_check_stubs=stubs, type_check_format="concise")
