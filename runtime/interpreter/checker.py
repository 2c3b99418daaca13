"""The type checker's processes, kept warm: what a check needs but the statement is read once, not
at each check.

A warm session must not remember what it checked. So what it is fed ends at a gate, a name that
suspends before anything runs, and the gate is then answered by an error: the interpreter remembers
the source of what succeeded, and only that.
"""

from __future__ import annotations

import atexit
import threading
from dataclasses import dataclass

from pydantic_monty import (
    FunctionSnapshot,
    Monty,
    MontyComplete,
    MontyCrashedError,
    MontyError,
    MontyRuntimeError,
    MontySession,
    NameLookupSnapshot,
    SyncSnapshot,
)

from runtime.interpreter import pool
from runtime.interpreter.processor_time import watchdog

GATE = "holdfast_gate"

SECONDS = 1.0
"""Processor seconds after which a live check is given up.

The usual one takes 0.003 s, and 0.04 s in a new process.
"""

REPLAY_SECONDS = 6.0
"""The same for a check that is known to have come to an end: it may take longer on another
processor.
"""

CHECKS = 500
"""Checks in one session. Each leaves about 0.4 kB behind."""

TRIES = 3
"""Sessions in which one check is tried, where they end for a reason that is not the check's."""


class GaveUp(Exception):
    """The checker needs too much time or memory: some sound loops make it go through all paths."""


@dataclass
class _Warm:
    """A session with the stubs that it knows, and how many checks it has made."""

    stubs: str
    session: MontySession
    checks: int = 0

    def end(self) -> None:
        self.session.__exit__(None, None, None)


_lock = threading.Lock()
_idle: list[_Warm] = []
"""Those that were used last stand last."""
_open = 0
_pool: Monty | None = None


def feed(stubs: str, source: str, seconds: float) -> None:
    """Check ``source``, whose first statement must be ``GATE``, against ``stubs``. None of it runs.

    Raises:
        MontyError: what the parser or the checker has against it.
        GaveUp: if that takes more than ``seconds`` of processor time, or too much memory.
        NoVerdict: if no process lives long enough to tell.
    """
    for _ in range(TRIES):
        try:
            warm = _take(stubs)
        except pool.NoVerdict:
            continue
        used, kept = warm.checks > 0, False
        try:
            kept = _fed(warm, source, seconds)
            if kept:
                return
        except MontyError as error:
            kept = True
            # It may be the memory of the checks before.
            if not isinstance(error.exception(), MemoryError | TimeoutError):
                raise
            kept = False
            if not used:
                raise GaveUp("the type checker needs too much memory") from error
        finally:
            _give_back(warm, kept=kept)
    raise pool.NoVerdict(f"the type checker's process ended {TRIES} times in mid-check")


def close() -> None:
    """Stop the processes that are idle, and all when they are given back."""
    global _open, _pool
    with _lock:
        ended, _pool = _pool, None
        idle = _idle.copy()
        _idle.clear()
        _open = 0
    for warm in idle:
        warm.end()
    if ended is not None:
        ended.__exit__(None, None, None)


def _fed(warm: _Warm, source: str, seconds: float) -> bool:
    """True, if the check came to its end without an objection; False, if its process ended.

    Raises:
        GaveUp: if it computed for too long.
    """
    try:
        with watchdog.limiting(pool.pid_of(warm.session), seconds) as limit:
            try:
                _at_gate(warm.session.feed_start(source))
            except MontyCrashedError as crash:
                pool.raise_if_stopped(crash)
                if limit.struck:
                    raise GaveUp("the type checker needs too much time") from crash
                return False
    except (ProcessLookupError, pool.NoVerdict):
        # It ended while it was idle: nobody's fault.
        return False
    return True


def _at_gate(snapshot: SyncSnapshot) -> None:
    """Go on to the gate, and end there."""
    while isinstance(snapshot, FunctionSnapshot):
        snapshot = snapshot.resume_not_handled()
    if isinstance(snapshot, NameLookupSnapshot):
        try:
            snapshot.resume()
        except MontyRuntimeError:
            return
    # The gate is the first thing that is run: past it, the statement itself would be.
    if isinstance(snapshot, MontyComplete):
        raise RuntimeError("a check went through its gate")


def _take(stubs: str) -> _Warm:
    """An idle session that knows ``stubs``, or a new one, in the place of the one that is idle for
    longest if need be.
    """
    global _open, _pool
    replaced: _Warm | None = None
    with _lock:
        known = [warm for warm in _idle if warm.stubs == stubs]
        if known:
            _idle.remove(known[-1])
            return known[-1]
        # All places are taken, and some by sessions that nobody asks, since their stubs are others.
        if _open >= pool.PROCESSES and _idle:
            replaced = _idle.pop(0)
        else:
            _open += 1
        if _pool is None:
            _pool = pool.started()
            atexit.register(close)
        processes = _pool
    # Without the lock: a process takes its time to end.
    if replaced is not None:
        replaced.end()
    session = processes.checkout(
        limits=pool.limits(), type_check=True, type_check_stubs=stubs, type_check_format="concise"
    )
    try:
        pool.begin(session)
    except BaseException:
        _left()
        raise
    return _Warm(stubs, session)


def _give_back(warm: _Warm, *, kept: bool) -> None:
    warm.checks += 1
    with _lock:
        if kept and warm.checks < CHECKS and _pool is not None:
            _idle.append(warm)
            return
    _left()
    warm.end()


def _left() -> None:
    """One is open no more."""
    global _open
    with _lock:
        # ``close`` counts from nothing again, also while this one was out.
        _open = max(_open - 1, 0)
