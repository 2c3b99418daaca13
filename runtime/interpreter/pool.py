"""The one seam to Monty: two pools of sandboxed interpreter processes, one to run statements and one to check them.

A session is bytes between statements (``dump``), so no process is held across an ``await`` (DESIGN.md section 4). Each pool
holds as many processes as there are threads that run workflow tasks: a checkout then never waits, and the time that a
statement is given is not spent in a queue.

The SDK's deadlock detector allows an activation 2 s. A stretch is checked, then run, so the limits of both together stay
under it.
"""

from __future__ import annotations

import atexit
import re
import threading
from dataclasses import dataclass
from typing import Final

from pydantic_monty import Monty, MontySession, OSPolicy, ResourceLimits

PROCESSES: Final = 8
"""Interpreter processes of each pool, and workflow tasks at a time, in one worker."""

CHECK_SECONDS: Final = 0.4
"""When a type check is given up, and the statement run without it. The usual one takes 0.03 s."""

HARD_SECONDS: Final = 1.4
"""What the interpreter stops a statement at."""

KILL_SECONDS: Final = 1.5
"""When a process that does not stop by itself is killed."""

DECLARED_SECONDS: Final = 1.0
"""A statement that took longer when live is declared a timeout; the rest is room for a slower replay."""

MAX_MEMORY_BYTES: Final = 64 << 20
"""What a statement may use. The count depends a little on what its process did before."""

REPLAY_MEMORY_BYTES: Final = 65 << 20
"""What a replay of a statement may use, so that one which kept within its limit does so again."""

MAX_SESSION_BYTES: Final = 12 << 20
"""What a session may weigh: its process has room for somewhat more, depending on what it did before."""

MAX_RECURSION: Final = 200
MAX_SUSPENSIONS: Final = 10_000

_STOPPED: Final = re.compile(r"\(signal: (1|2|15) ")
"""SIGHUP, SIGINT and SIGTERM: Ctrl-C reaches every process of the terminal, and systemd stops all of a service."""


class InterpreterStopped(Exception):
    """The interpreter's process was told to end, as the whole worker is. The statement's task must be tried again."""


@dataclass
class _Processes:
    """A pool that starts when it is first used."""

    kill_seconds: float
    pool: Monty | None = None


_lock = threading.Lock()
_running = _Processes(KILL_SECONDS)
_checking = _Processes(CHECK_SECONDS)


def raise_if_stopped(error: Exception) -> None:
    """Tells the end of a process by a signal to stop, which says nothing about the statement, from a crash.

    Raises:
        InterpreterStopped: if ``error`` is the former.
    """
    if _STOPPED.search(str(error)):
        raise InterpreterStopped(
            f"the interpreter was stopped in mid-statement, which will run again: {error}"
        ) from error


def limits(*, replay: bool = False) -> ResourceLimits:
    """The limits of one statement. Depth and suspensions count deterministically; time and memory are for verdicts to tell."""
    return ResourceLimits(
        max_feed_duration_secs=HARD_SECONDS,
        max_memory=REPLAY_MEMORY_BYTES if replay else MAX_MEMORY_BYTES,
        max_recursion_depth=MAX_RECURSION,
        max_suspensions=MAX_SUSPENSIONS,
    )


def _started(processes: _Processes) -> Monty:
    with _lock:
        if processes.pool is None:
            processes.pool = Monty(min_processes=1, max_processes=PROCESSES, request_timeout=processes.kill_seconds)
            processes.pool.__enter__()
            atexit.register(close)
        return processes.pool


def close() -> None:
    """Stop the interpreter processes. The next checkout starts new ones."""
    for processes in (_running, _checking):
        with _lock:
            pool, processes.pool = processes.pool, None
        if pool is not None:
            pool.__exit__(None, None, None)


def session(*, seed: str = "", replay: bool = False) -> MontySession:
    """A session for running statements. ``seed`` starts ``random``; the clock asks the host; sleeping takes no time."""
    policy: OSPolicy = {"datetime": "call_host", "sleep": "zero", "timezone": "utc", "random_start": {"seed": seed}}
    return _started(_running).checkout(limits=limits(replay=replay), os_policy=policy)


def checking_session(stubs: str) -> MontySession:
    """A session whose first feed is type-checked against ``stubs`` and never run past its first name."""
    return _started(_checking).checkout(
        limits=limits(), type_check=True, type_check_stubs=stubs, type_check_format="concise"
    )
