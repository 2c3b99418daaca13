"""A cancel of a job, raised where a replay raises it too.

A cancel may come while an activity within the worker runs, in a workflow task that is cut. A replay
has that activity's result before it, and has come to the next wait for the server when it hears of
the cancel. So the job does not hear of it where it is: it comes to that wait first, whose command
then stands in the history, and an event of the server that was asked for behind that command ends
the wait. What is asked for and given up in one workflow task would be no command at all. If the
wait ends by itself before, what it waited for is taken, and the next one does not begin.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from workflows.moment import Moment, one_event

T = TypeVar("T")


class Cancelling:
    """Raises a run's cancel in ``working``, at a wait of its ``moment`` that a cancel may end."""

    def __init__(self, moment: Moment) -> None:
        self._moment = moment
        self._raising: asyncio.Task[None] | None = None

    @property
    def under_way(self) -> bool:
        """Whether a cancel has come, and was not raised yet."""
        return self._raising is not None and not self._raising.done()

    async def done(self, working: asyncio.Task[T]) -> T:
        """What ``working`` comes to.

        Raises:
            CancelledError: if it was ended by a cancel.
        """
        try:
            while True:
                try:
                    return await asyncio.shield(working)
                except asyncio.CancelledError:
                    # The SDK cancels all there is where it puts a workflow out of memory.
                    if working.cancelled():
                        raise
                    if not working.done() and not self.under_way:
                        self._raising = asyncio.ensure_future(self._raise_in(working))
        finally:
            # A job that has done all its work ends as it would have.
            self._moment.cancelled = 0

    async def before_the_end(self) -> None:
        """Wait for an event of the server at the end of a run: a cancel that has come is raised,
        which the next run would not hear of. Nothing is looked at.

        Raises:
            CancelledError: if there is one.
        """
        with self._moment.ends_by_a_cancel():
            await one_event("before another run")
        # Also one that comes in this very task is known when nothing else can run.
        await workflow.wait_condition(lambda: True)
        if self.under_way or self._moment.cancelled:
            self._moment.raise_cancel()

    async def _raise_in(self, working: asyncio.Task[T]) -> None:
        moment, seen = self._moment, 0

        def waits() -> bool:
            nonlocal seen
            seen = moment.wait
            return seen > 0 or working.done()

        # Conditions are looked at when nothing else can run: the wait has made its commands. It may
        # have ended by the same look.
        while not seen or moment.wait != seen:
            await workflow.wait_condition(waits)
            if working.done():
                return
        wait = moment.cancelled = seen
        await one_event("cancel")
        # What has ended by itself meanwhile is taken, and the job comes to its next wait.
        await workflow.wait_condition(lambda: True)
        if moment.wait == wait:
            working.cancel()
