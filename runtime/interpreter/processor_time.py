"""Processor time: what a statement has computed, on an idle machine and on a busy one alike.

Wall time tells how busy the machine is. So an interpreter process is bounded by the time that it
had on a processor; its stretch's verdict is made durable, and a replay does not ask what this one
took.
"""

from __future__ import annotations

import contextlib
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


if sys.platform == "linux":

    def _seconds(pid: int) -> float:
        # CPUCLOCK_SCHED of a process (clock_getcpuclockid(3)): nanoseconds, where /proc/PID/stat
        # counts in hundredths.
        return time.clock_gettime((~pid << 3) | 2)

else:

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

    ``struck`` tells that it was killed for computing more.
    """

    def __init__(self, pid: int, seconds: float) -> None:
        self.pid = pid
        self.struck = False
        self._end = processor_seconds(pid) + seconds

    def look(self) -> None:
        """Kill the process if it has computed more."""
        with contextlib.suppress(ProcessLookupError):
            if not self.struck and processor_seconds(self.pid) > self._end:
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
