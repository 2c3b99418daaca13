"""A job that is paused: no turn begins until somebody has it go on. It holds no worker, and the
time is not worked for it.
"""

from __future__ import annotations

from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from workflows.messages import JobOrder
    from workflows.moment import Moment, arrival


class Pausing:
    """Whether one job is paused.

    ``wished`` is what was last asked for, and not looked at yet; ``held`` whether its parent is
    paused, with which its sub-jobs are.
    """

    def __init__(self, order: JobOrder, moment: Moment) -> None:
        self._moment = moment
        self.wished = order.paused
        self.held = order.held
        self.paused = self.asked

    @property
    def asked(self) -> bool:
        """Whether the job is to be paused, by itself or with its parent."""
        return self.wished or self.held

    def look(self) -> None:
        """Take note of what was asked for; see ``Moment``."""
        self.paused = self.asked

    @property
    def carried(self) -> dict[str, Any]:
        """What the order of the run that goes on says."""
        return {"paused": self.wished, "held": self.held}

    async def wait(self) -> None:
        """Wait until the job is to go on, no longer than it may last."""
        resumed = arrival(lambda: not self.asked, self._moment.until_deadline(), "paused")
        await self._moment.after(resumed, lambda _: 0.0)
