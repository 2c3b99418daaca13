"""The one way in which workflow code calls activities: each is patient, is given to another worker
that is there, and has a name.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import Priority, RetryPolicy

with workflow.unsafe.imports_passed_through():
    from activities.verdicts import RecordedVerdict, record_verdict
    from workflows.patches import EARLIER, patched
from workflows.limits import HEARTBEAT, LOCAL_LIMIT, PATIENT, READ_LIMIT

Result = TypeVar("Result")

NOTHING = "nothing"
"""What no memo has."""


def start(
    activity: str,
    argument: Any,
    result: type[Result],
    *,
    id: str,
    limit: timedelta = READ_LIMIT,
    until: timedelta | None = None,
    summary: str | None = None,
    tries: RetryPolicy = PATIENT,
    queue: str | None = None,
    priority: Priority = Priority.default,
) -> workflow.ActivityHandle[Result]:
    """Have an activity done.

    ``limit`` bounds one attempt, ``until`` all of them with what lies between (None: nothing does).

    ``queue`` is the task queue that it goes by, the workflow's own if there is none, and
    ``priority`` how it stands there.

    ``id`` is its name in the run; ``summary`` is what Temporal's UI shows of it.
    """
    return workflow.start_activity(
        activity,
        argument,
        task_queue=queue,
        priority=priority,
        result_type=result,
        activity_id=id,
        start_to_close_timeout=limit,
        schedule_to_close_timeout=until,
        heartbeat_timeout=HEARTBEAT,
        retry_policy=tries,
        summary=summary,
    )


async def result_of(activity: str, argument: Any, result: type[Result], **how: Any) -> Result:
    """The result of an activity; ``how`` as in ``start``."""
    return await start(activity, argument, result, **how)


async def call_within(activity: str, argument: Any, result: type[Result]) -> Result:
    """The result of an activity of this worker itself: what it is given crosses no wire and stands
    in no history.
    """
    if patched(EARLIER):
        # A command, by which a replay tells the parts of a task apart that is cut meanwhile (see
        # ``Moment``); not one that another undoes, as a timer's end does: a replay may come to both
        # in one part.
        workflow.upsert_memo({NOTHING: None})
    made: Result = await workflow.execute_local_activity(
        activity,
        argument,
        result_type=result,
        start_to_close_timeout=READ_LIMIT,
        # Beyond it a retry becomes a timer of the server, and the workflow task can end meanwhile.
        local_retry_threshold=LOCAL_LIMIT,
        retry_policy=PATIENT,
    )
    return made


async def recorded(verdict: RecordedVerdict | None) -> RecordedVerdict | None:
    """The verdict that the history has of a stretch: ``verdict``, if that was made now.

    By an activity of this worker itself, which ends with the workflow task that asks for it.
    """
    return await workflow.execute_local_activity(
        record_verdict, verdict, start_to_close_timeout=LOCAL_LIMIT
    )
