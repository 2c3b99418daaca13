"""Work that is measured, to see how it grows."""

import time
from collections.abc import Callable


def work(call: Callable[[], object]) -> float:
    """Seconds of this thread's processor time for ``call``, the least of three."""
    times = []
    for _ in range(3):
        started = time.thread_time()
        call()
        times.append(time.thread_time() - started)
    return min(times)
