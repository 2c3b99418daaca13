"""How long activities may take, and how often they are tried."""

from __future__ import annotations

from datetime import timedelta

from temporalio.common import RetryPolicy

HEARTBEAT = timedelta(seconds=30)
"""How long a worker may be silent before its activity is given to another: longer than any busy machine keeps it from speaking.

That a worker of the same state directory has died is known at once, by another way (``runtime/presence.py``)."""

CALL_LIMIT = timedelta(hours=1)
READ_LIMIT = timedelta(minutes=2)
TOOL_LIMIT = timedelta(hours=6)
LOCAL_LIMIT = timedelta(seconds=30)
PATIENT = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=60))

SUMMARY_LIMIT = timedelta(minutes=20)
FEW_TRIES = RetryPolicy(
    initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=60), maximum_attempts=3
)
"""For a summary that nobody waits for: something else stands in, and another attempt begins with a later turn."""

TASK_LIMIT = timedelta(seconds=60)
"""How long a workflow task may take: a worker that has a job not in memory replays its run within one."""
