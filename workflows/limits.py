"""How long activities may take, and how often they are tried."""

from __future__ import annotations

from datetime import timedelta

from temporalio.common import RetryPolicy

from runtime.base.spec.models import SETUP_SECONDS, Retry, Writable

HEARTBEAT = timedelta(seconds=30)
"""How long a worker may be silent before its activity is given to another: longer than any busy
machine keeps it from speaking.

That a worker of the same state directory has died is known at once, by another way
(``runtime/worker/presence.py``).
"""

CALL_LIMIT = timedelta(hours=1)
READ_LIMIT = timedelta(minutes=2)
TOOL_LIMIT = timedelta(hours=6)
SERVERS_LIMIT = timedelta(minutes=15)
LOCAL_LIMIT = timedelta(seconds=30)
PATIENT = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=60))

RECORD_TRIES = RetryPolicy(
    initial_interval=PATIENT.initial_interval,
    maximum_interval=PATIENT.maximum_interval,
    maximum_attempts=64,
)
"""For a record that cannot be read: an hour of tries.

They are counted, since hours in which no worker is there are none.
"""

CHECK_LIMIT = timedelta(hours=1)
"""How long a check may run that does not say so itself (``@tool(timeout=...)``)."""

CHECK_TRIES = RetryPolicy(
    initial_interval=PATIENT.initial_interval,
    maximum_interval=PATIENT.maximum_interval,
    maximum_attempts=5,
)
"""For a check that no worker can run: then there is no score."""

SUMMARY_ATTEMPTS = 4
SUMMARY_SECONDS = 600.0
"""What a job waits for a summary at most: something else stands in for it."""


def summary_retry(retry: Retry) -> Retry:
    """How long a call that has a summary written is patient, in a job that is patient as ``retry``
    says.
    """
    return retry.model_copy(
        update={
            "attempts": min(retry.attempts, SUMMARY_ATTEMPTS),
            "time": min(retry.time, SUMMARY_SECONDS),
        }
    )


SUMMARY_LIMIT = timedelta(minutes=20)


def sooner(limit: timedelta, other: timedelta | None) -> timedelta:
    """The lesser of a limit and another one, if there is one."""
    return limit if other is None else min(limit, other)


OPEN_LIMIT = timedelta(hours=2)
"""One attempt at opening a workspace: a large directory is read, its set-up is run."""

COMMAND_SLACK = timedelta(minutes=10)
"""What an attempt at a command, or a check, may take beside the time that this may run."""


def command_limit(seconds: float, writable: Writable) -> timedelta:
    """How long one attempt may take at a command that may run so many ``seconds``.

    A host that has not the job's set-up makes it first: the job was opened on another one, or what
    was made there has been tidied up.
    """
    setup = SETUP_SECONDS if writable.setup else 0
    return timedelta(seconds=seconds + setup) + COMMAND_SLACK
