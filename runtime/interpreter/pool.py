"""The one seam to Monty: a pool of sandboxed interpreter processes.

``checker`` has another, for type checks.

A session is bytes between statements (``dump``), so no process is held across an ``await``
(docs/design.md section 4). Each pool holds as many processes as there are threads that run workflow
tasks: a checkout then never waits.

What bounds a statement is counted: processor time (``processor_time``), calls, depth. The wall
limit here is for a process that does not compute and does not answer either; where it strikes,
nothing is known of the statement.
"""

from __future__ import annotations

import atexit
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from pydantic_monty import (
    Monty,
    MontyCrashedError,
    MontyError,
    MontySession,
    OSPolicy,
    ResourceLimits,
)

PROCESSES: Final = 8
"""Interpreter processes of each pool, and workflow tasks at a time, in one worker."""

DECLARED_SECONDS: Final = 1.0
"""Processor seconds that a statement may take, the calls that it makes included.

One that took more when live is a timeout.
"""

HARD_SECONDS: Final = 1.2
"""Processor seconds after which a live stretch is killed."""

REPLAY_SECONDS: Final = 6.0
"""Processor seconds after which a replayed stretch is killed: one that took 1 s when live may take
longer on another processor.
"""

KEEPING_SECONDS: Final = 6.0
"""Processor seconds that restoring a session, saving it and listing its variables may take each.

The largest takes 0.3 s.
"""

WALL_SECONDS: Final = 20.0
"""When a process that does not answer is killed, however little it has computed."""

MAX_MEMORY_BYTES: Final = 64 << 20
"""What a statement may use. The count depends a little on what its process did before."""

REPLAY_MEMORY_BYTES: Final = 65 << 20
"""What a replay of a statement may use, so that one which kept within its limit does so again."""

MAX_SESSION_BYTES: Final = 12 << 20
"""What a session may weigh: its process has room for somewhat more, depending on what it did
before.
"""

MAX_RECURSION: Final = 200

MAX_CALLS: Final = 10_000
"""Calls and attributes of the host that one statement may ask for."""

_STOPPED: Final = re.compile(r"\(signal: (1|2|15) ")
"""SIGHUP, SIGINT and SIGTERM: Ctrl-C reaches every process of the terminal, and systemd stops all
of a service.
"""

_KILLED: Final = re.compile(r"\(signal: 9 ")


class InterpreterStopped(Exception):
    """The interpreter's process was told to end, as the whole worker is.

    The statement's task must be tried again.
    """


class NoVerdict(Exception):
    """The interpreter ended, or was too slow to answer, for a reason that is not the statement's:
    its task must be tried again.
    """


@dataclass
class _Processes:
    """A pool that starts when it is first used."""

    pool: Monty | None = None


_lock = threading.Lock()
_running = _Processes()


def raise_if_stopped(error: Exception) -> None:
    """Tells the end of a process by a signal to stop, which says nothing about the statement, from
    a crash.

    Raises:
        InterpreterStopped: if ``error`` is the former.
    """
    if _STOPPED.search(str(error)):
        raise InterpreterStopped(
            f"the interpreter was stopped in mid-statement, which will run again: {error}"
        ) from error


def was_killed(error: Exception) -> bool:
    """Whether a process that has ended was killed from outside, as far as can be known."""
    return not isinstance(error, MontyError) or _KILLED.search(str(error)) is not None


def limits(*, replay: bool = False) -> ResourceLimits:
    """The limits that the interpreter knows itself.

    Depth counts deterministically; what hits the memory limit is for verdicts to tell.
    """
    return ResourceLimits(
        max_memory=REPLAY_MEMORY_BYTES if replay else MAX_MEMORY_BYTES,
        max_recursion_depth=MAX_RECURSION,
        # Above MAX_CALLS, which is counted here, over all stretches of a statement.
        max_suspensions=2 * MAX_CALLS,
    )


def started() -> Monty:
    """A new pool of processes."""
    made = Monty(min_processes=1, max_processes=PROCESSES, request_timeout=WALL_SECONDS)
    made.__enter__()
    return made


def pid_of(session: MontySession) -> int:
    """The id of the process that serves a session between its turns.

    Raises:
        NoVerdict: if it has none.
    """
    pid = session.worker_pid
    if pid is None:
        raise NoVerdict("the interpreter has no process")
    return pid


def close() -> None:
    """Stop the interpreter processes. The next checkout starts new ones."""
    with _lock:
        pool, _running.pool = _running.pool, None
    # Without the lock: processes take their time to end.
    if pool is not None:
        pool.__exit__(None, None, None)


@contextmanager
def session(*, seed: str = "", replay: bool = False) -> Iterator[MontySession]:
    """A session for running statements, within the block.

    ``seed`` starts ``random``; the clock asks the host; sleeping takes no time.

    Raises:
        NoVerdict: as ``begin``.
    """
    policy: OSPolicy = {
        "datetime": "call_host",
        "sleep": "zero",
        "timezone": "utc",
        "random_start": {"seed": seed},
    }
    with _lock:
        if _running.pool is None:
            _running.pool = started()
            atexit.register(close)
        pool = _running.pool
    made = pool.checkout(limits=limits(replay=replay), os_policy=policy)
    begin(made)
    with ExitStack() as ending:
        ending.push(made)
        yield made


def begin(session: MontySession) -> None:
    """Give a session its process.

    Raises:
        InterpreterStopped: if that one was told to stop.
        NoVerdict: if it ended before it was asked anything.
    """
    try:
        session.__enter__()
    except MontyCrashedError as crash:
        raise_if_stopped(crash)
        raise NoVerdict(f"the interpreter's process ended as it began: {crash}") from crash
