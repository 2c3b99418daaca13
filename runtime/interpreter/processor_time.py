"""Processor time: what a statement has computed, on an idle machine and on a busy one alike.

Wall time tells how busy the machine is. So an interpreter process is bounded by the time that it
had on a processor; its stretch's verdict is made durable, and a replay does not ask what this one
took.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator

LOOK_SECONDS = 0.1
"""How often the processes that are computing are looked at.

What one has computed beyond its limit by then is lost.
"""

ORPHAN_SECONDS = 30.0
"""What one may compute beyond its limit before the kernel kills it, by itself: its worker may have
been killed, and then nobody looks.
"""


if sys.platform == "linux":
    import resource

    def _seconds(pid: int) -> float:
        # CPUCLOCK_SCHED of a process (clock_getcpuclockid(3)): nanoseconds, where /proc/PID/stat
        # counts in hundredths.
        return time.clock_gettime((~pid << 3) | 2)

    @contextlib.contextmanager
    def _outlived(pid: int, end: float) -> Iterator[None]:
        """Within the block, the kernel kills the process once it has computed until ``end``."""
        before = None
        # It may have ended, or this process may have no right to.
        with contextlib.suppress(OSError, ValueError):
            before = resource.prlimit(pid, resource.RLIMIT_CPU)
            hard = before[1]
            wanted = math.ceil(end)
            bounded = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.prlimit(pid, resource.RLIMIT_CPU, (bounded, hard))
        try:
            yield
        finally:
            # What it computes for others afterwards has limits of its own.
            if before is not None:
                with contextlib.suppress(OSError, ValueError):
                    resource.prlimit(pid, resource.RLIMIT_CPU, before)

else:

    @contextlib.contextmanager
    def _outlived(pid: int, end: float) -> Iterator[None]:
        yield

    def _seconds(pid: int) -> float:
        import psutil

        try:
            times = psutil.Process(pid).cpu_times()
        except psutil.Error as error:
            raise ProcessLookupError(str(error)) from error
        return float(times.user + times.system)


def processor_seconds(pid: int) -> float:
    """The processor time of a child process since its start, in seconds.

    Raises:
        ProcessLookupError: if there is no such process any more.
    """
    try:
        return _seconds(pid)
    except OSError as error:
        raise ProcessLookupError(f"no process {pid}") from error


class Stopwatch:
    """The processor time of an interpreter process and of the thread that answers its calls, from
    its creation.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        # From now on: a process of the pool has served other statements before.
        self._process = self._started = processor_seconds(pid)
        self._thread = time.thread_time()

    @property
    def milliseconds(self) -> int:
        """Milliseconds until now. Of a process that has ended: what was seen last."""
        with contextlib.suppress(ProcessLookupError):
            self._process = processor_seconds(self._pid)
        return int((self._process - self._started + time.thread_time() - self._thread) * 1000)


class Limit:
    """How much a process may compute from now on.

    ``end`` is the processor time at which it ends, in seconds; ``struck`` tells that it was killed
    for computing more.
    """

    def __init__(self, pid: int, seconds: float) -> None:
        self.pid = pid
        self.struck = False
        self.end = processor_seconds(pid) + seconds

    def look(self) -> None:
        """Kill the process if it has computed more."""
        with contextlib.suppress(ProcessLookupError):
            if not self.struck and processor_seconds(self.pid) > self.end:
                self.struck = True
                os.kill(self.pid, signal.SIGKILL)


class Watchdog:
    """A thread that looks at the processes that are computing, and sleeps while there are none."""

    def __init__(self) -> None:
        self._limits: set[Limit] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def limiting(self, pid: int, seconds: float) -> Iterator[Limit]:
        """Within the block, the process may compute for ``seconds``."""
        limit = Limit(pid, seconds)
        with self._changed:
            self._limits.add(limit)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._watch, name="holdfast-watchdog", daemon=True
                )
                self._thread.start()
            self._changed.notify()
        try:
            with _outlived(pid, limit.end + ORPHAN_SECONDS):
                yield limit
        finally:
            # Under the same lock as the killing: afterwards the process may be another statement's.
            with self._changed:
                self._limits.discard(limit)

    def _watch(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._limits)
                for limit in self._limits:
                    limit.look()
            # Without the lock, which whoever begins and ends a stretch needs.
            time.sleep(LOOK_SECONDS)


watchdog = Watchdog()
