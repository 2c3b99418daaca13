"""The question that a job waits with for a person, as its newest run asked it."""

from __future__ import annotations

import asyncio

from temporalio.api.enums.v1 import EventType

from runtime.archive.approvals import Waiting, waiting_question
from runtime.archive.job import JobArchive
from runtime.base.errors import NotFound
from runtime.base.values import JobKey
from runtime.base.workflow_ids import approval_activity_id, job_workflow_id
from runtime.client.control import Control


async def open_question(control: Control, key: JobKey) -> Waiting:
    """The question that a job waits with.

    A run that goes on from the archive, or was taken back to before it asked, asks anew: until
    then the archive has the question of the run before it, and nobody would hear its answer.

    Raises:
        NotFound: if there is none.
        ObjectCorrupt: if it cannot be read.
    """
    archive = JobArchive.of(control.store, key)
    waiting = await asyncio.to_thread(waiting_question, archive)
    newest = await control.newest_run(key)
    if waiting is not None and newest and newest != waiting.run:
        asked = await _has_asked(control, key, newest, waiting)
        # What that run asked itself stands in the archive before it stands in the history.
        waiting = await asyncio.to_thread(waiting_question, archive)
        if waiting is not None and waiting.run != newest and not asked:
            raise NotFound(
                f"job {key} waits for no approval yet: its run {waiting.run} did, and the one that"
                " took its place has not asked again yet"
            )
    if waiting is None:
        raise NotFound(f"job {key} waits for no approval ('holdfast approvals' lists those)")
    return waiting


async def _has_asked(control: Control, key: JobKey, run: str, waiting: Waiting) -> bool:
    """Whether the history of a run has the question: its own, or that of the run that it is a reset
    of.
    """
    handle = control.client.get_workflow_handle(job_workflow_id(key), run_id=run)
    scheduled = set[int]()
    async for event in handle.fetch_history_events():
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            attributes = event.activity_task_scheduled_event_attributes
            if attributes.activity_id == approval_activity_id(waiting.turn, waiting.effect):
                scheduled.add(event.event_id)
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
            completed = event.activity_task_completed_event_attributes
            if completed.scheduled_event_id in scheduled:
                return True
    return False
