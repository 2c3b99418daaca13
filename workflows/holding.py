"""The sub-jobs of a job that is paused: they are held with it, and go on with it.

They are told by signals, which are commands of the workflow. A signal of a user may stand before
the verdict of a statement live and after it in a replay (see ``Moment``), so none of it is told
there and then: each change is told in the order in which it came, one at a time, while the job
waits for the server and has no other command to make. So live and in a replay the same commands
follow each other.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import Any

from temporalio import workflow
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from runtime.base.values import JobKey
    from runtime.base.workflow_ids import job_workflow_id
    from workflows.messages import Hold, JobOrder
    from workflows.moment import Moment
    from workflows.patches import patched

TOLD = "sub-jobs-are-held"
"""The patch since which a job tells its sub-jobs that it is paused."""


class Holding:
    """Whether the sub-jobs of one job are held. ``told``: what they were told, or begun with."""

    def __init__(self, order: JobOrder, moment: Moment) -> None:
        self._own, self._moment = str(order.key), moment
        self.told = self._last = order.told
        self._changes: deque[bool] = deque()
        self._telling: asyncio.Task[None] | None = None
        self._number = 0
        moment.waiting_begins = self._tell

    def change(self, *, held: bool) -> None:
        """Have them be held, or go on, as soon as that can be told."""
        if held != self._last:
            self._last = held
            self._changes.append(held)
            self._tell()

    @property
    def carried(self) -> dict[str, Any]:
        """What the order of the run that goes on says."""
        return {"told": self.told}

    async def told_all(self) -> None:
        """Wait until they have heard what they are being told."""
        await workflow.wait_condition(lambda: self._telling is None)

    async def tell(self, job: str, known: bool | None) -> None:
        """Tell a sub-job that is not among those of the job yet, and was begun as ``known``; None:
        that one was found, so nobody knows.
        """
        while known != self.told and patched(TOLD):
            known = self.told
            await self._signal(job, known)

    def _tell(self) -> None:
        """Begin to tell them the next change, if there is one and this is the time for it."""
        if not self._moment.waits or self._telling is not None or not self._changes:
            return
        self.told = self._changes.popleft()
        # What has arrived and was not looked at yet is not to decide either.
        open_ = [one.job for one in self._moment.job.ledger.sub_jobs.of(self._own) if not one.end]
        # A job whose history is of a release before told its sub-jobs nothing.
        if open_ and patched(TOLD):
            self._telling = asyncio.create_task(self._told(open_, held=self.told))
            self._telling.add_done_callback(self._has_told)
        else:
            self._tell()

    async def _told(self, jobs: list[str], *, held: bool) -> None:
        await asyncio.gather(*(self._signal(job, held) for job in jobs))

    def _has_told(self, _: asyncio.Task[None]) -> None:
        self._telling = None
        self._tell()

    async def _signal(self, job: str, held: bool) -> None:
        self._number += 1
        batch, _, name = job.partition("/")
        handle = workflow.get_external_workflow_handle(
            job_workflow_id(JobKey(batch=batch, job=name))
        )
        hold = Hold(id=f"{workflow.info().run_id}/{self._number}", held=held)
        # One that has ended hears nothing.
        with contextlib.suppress(FailureError):
            await handle.signal("hold", hold)
