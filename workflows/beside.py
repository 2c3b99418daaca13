"""What a batch has done beside its loop, which waits for things to be so and raises what went wrong
there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from temporalio import workflow
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from workflows.patches import patched

MAY_FAIL = "beside-the-loop-may-fail"
"""The patch since which what fails beside the loop, as the cancel of a job that the server does not
know any more, keeps no run from going on.
"""


class Beside:
    """What goes on beside one run's loop. ``busy`` is how much of it the run may not end in the
    midst of.
    """

    def __init__(self) -> None:
        self.busy = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._broken: Exception | None = None
        """What went wrong, and in no activity or child: with this code."""

    def soon(self, work: Coroutine[Any, Any, None], *, whole: bool = False) -> None:
        """Have something done; as a ``whole``, if the run may not end before."""
        # Counted before the task runs: the loop looks at it before that.
        self.busy += whole
        task = asyncio.create_task(self._done(work, whole=whole))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for something.

        Raises:
            Exception: what went wrong. It fails the workflow task, which is tried again, at last by
                a worker that knows better: of what such a task does nothing stays.
        """
        await workflow.wait_condition(lambda: self._broken is not None or is_so())
        if self._broken is not None:
            raise self._broken

    async def _done(self, work: Coroutine[Any, Any, None], *, whole: bool) -> None:
        try:
            await work
        except FailureError as error:
            # Asked only here: elsewhere a release before this one does the same.
            if not (whole and patched(MAY_FAIL)):
                raise
            workflow.logger.warning(f"passed over what failed beside the loop: {error}")
        except Exception as error:  # noqa: BLE001 - The loop raises it.
            self._broken = error
        self.busy -= whole
