"""The moment of a job's run: what time it is for the job, and what has arrived.

The loop and its parts share one.

Where a query is answered while a local activity runs, the SDK hands the activity's result over in a
later workflow task; a replay hands it over at once. Time, messages, payloads and events that came
in between are therefore not looked at before the next event of the server that the job waits for:
then both see the same. So every such wait goes through ``Moment.after``, and nothing else looks. A
cancel is raised there, too (``workflows/cancelling.py``).

A task that is cut while a local activity runs has no command yet. If the one before had none
either, a replay takes the parts of the cut one for one task, whose time is that of the last part.
So a verdict records what the look before it saw, and the task of another local activity has a
command (``workflows.calling.call_within``).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import NoReturn, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.contracts import Left
    from runtime.base.values import StepRef
    from runtime.job.job import Job
    from workflows.answers import Live
    from workflows.messages import Origin
    from workflows.patches import BEHIND_SIGNALS, OUTLASTS, patched

T = TypeVar("T")


async def one_event(why: str) -> None:
    """Wait for an event of the server, which the history shows with ``why`` it is waited for."""
    # The shortest timer that is one: what has come before is known when it fires.
    await workflow.sleep(timedelta(milliseconds=1), summary=why)


async def arrival(condition: Callable[[], bool], longest: timedelta | None, summary: str) -> None:
    """Wait until something has arrived that makes ``condition`` true, ``longest`` at most; then for
    an event that is no signal.

    What a signal sets going runs before its workflow is told that it was reset to that task
    (temporalio 1.35), and would ask for no order.
    """
    with suppress(asyncio.TimeoutError):
        await workflow.wait_condition(condition, timeout=longest, timeout_summary=summary)
        if patched(BEHIND_SIGNALS):
            await one_event("behind a signal")


class Moment:
    """``job`` as it is ``now`` (workflow time, in seconds), after the step ``parent``.

    ``idle`` are the seconds of the last wait in which nobody worked for it. ``inbox`` and
    ``condense_asked`` are what users sent until the last look, ``arrived`` and ``condense_arrived``
    what came since; ``heard`` is what the turn began with. ``looking`` are told of each look.
    ``answers``: the turn's come from the world, or from a record. ``waits``: an event of the server
    is waited for, and nothing within the worker; ``waiting_begins`` is told of each such wait, when
    that has made its commands. ``wait`` is the number of one that a cancel may end, 0 if there is
    none, and ``cancelled`` that of the one in which a cancel is to be raised; those behind it do
    not begin. ``kept``: the archive may have something that this run read.
    """

    def __init__(self, job: Job, origin: Origin | None) -> None:
        self.job = job
        self.now = workflow.time()
        self.idle = 0.0
        self.parent: StepRef | None = origin.parent if origin is not None else None
        self.inbox: list[str] = list(origin.inbox) if origin is not None else []
        self.arrived: list[str] = []
        self.heard: list[str] = []
        self.condense_asked = origin.condense if origin is not None else False
        self.condense_arrived = False
        self.looking: list[Callable[[], None]] = []
        self.waits = False
        self.wait = self.cancelled = self._waits = 0
        self.waiting_begins: Callable[[], None] = lambda: None
        self.answers = Live()
        self._handed: tuple[str, ...] = origin.through if origin is not None else ()
        self._bases: tuple[str, ...] = ()
        self.kept = self._called = False
        # When a look was taken that no verdict records, and what there was before it.
        self.unrecorded = 0.0
        self._before: tuple[float, float, float, float | None] = (self.now, 0.0, 0.0, 0.0)

    async def after(
        self,
        wait: Awaitable[T],
        worked: Callable[[T], float | None],
        failed: Callable[[ActivityError], float | None] | None = None,
    ) -> T:
        """What the server was waited for; then take note of the time and of what has arrived.

        Of the time that has passed, as many seconds at most as ``worked`` says are the job's; None:
        all of it, since nobody told. With ``failed``, which says so of an error, note is taken
        after an error too.
        """
        if self.cancelled:
            # Given up before it is begun.
            wait.close() if asyncio.iscoroutine(wait) else asyncio.ensure_future(wait).cancel()
            self.raise_cancel()
        self.waits = True
        # It runs when the wait has come to where it waits.
        asyncio.get_running_loop().call_soon(self.waiting_begins)
        try:
            with self.ends_by_a_cancel():
                result = await wait
        except ActivityError as error:
            # Without it nothing is looked at: the error ends the turn, and the next wait will look.
            if failed is not None:
                self._look(failed(error))
            raise
        finally:
            self.waits = False
        self._look(worked(result))
        return result

    @contextmanager
    def ends_by_a_cancel(self) -> Iterator[None]:
        """Within the block an event of the server is waited for.

        Raises:
            CancelledError: at its beginning, if a cancel was to be raised in a wait before.
        """
        if self.cancelled:
            self.raise_cancel()
        outer = self.wait
        self._waits += 1
        self.wait = self._waits
        try:
            yield
        except BaseException as error:
            # Only here it is known that nothing has swallowed it.
            if is_cancelled_exception(error):
                self.cancelled = 0
            raise
        finally:
            self.wait = outer

    def raise_cancel(self) -> NoReturn:
        """Raise the cancel, once.

        Raises:
            CancelledError: always.
        """
        self.cancelled = 0
        raise asyncio.CancelledError

    def recall(self, at: float) -> None:
        """The last look was taken ``at`` this time, as a verdict records."""
        if at != self.now:
            self.now, self.idle, self.job.ledger.worked, worked = self._before
            self._pass(at, worked)

    def begin(self) -> None:
        """Take the first look: nothing was waited for, and nobody has worked."""
        self._look(0.0)

    def ran(self, seconds: float) -> None:
        """The interpreter has run for the job, which the history holds in its verdict."""
        self.now += seconds
        self.job.ledger.work(seconds)

    def called(self, step: StepRef, *, own: bool) -> None:
        """A turn has its reply: its ``step`` is this run's ``own``, or one of the record that is
        restored.
        """
        # The chain's head, which the next call and the end name as their parent.
        self.parent = step
        self._handed, self._bases, self._called = (), (), own

    @property
    def through(self) -> tuple[str, ...]:
        """The runs, oldest first, that the job came through since ``parent``, and that have no step
        on its way: those that were reset, and those without a call that ``kept`` something.
        """
        return (*self._handed, *self._bases)

    @property
    def carried(self) -> tuple[str, ...]:
        """``through``, for the run that goes on."""
        named = self.kept and not self._called
        return (*self.through, workflow.info().run_id) if named else self.through

    def came_from(self, bases: tuple[str, ...]) -> None:
        """The run was reset to here: ``bases`` are those that were on the way, since ``parent``."""
        self._bases, self._called = bases, False

    def reset(self) -> None:
        """A run was reset to here: the time since is not the job's, and a deadline after its start
        goes on from where it stood; so does the batch's time, if that is over.
        """
        ledger, now = self.job.ledger, workflow.time()
        since = now - self.now
        # Where this task looked at the time before, it is in that gap.
        since = since if since > 0 else self.idle
        ledger.started += since
        if ledger.until and patched(OUTLASTS):
            ledger.outlast(now, since)
        self.now = now
        self.unrecorded = 0.0

    def left(self, held: str = "") -> Left:
        """What a call may use up, with its failed attempts: what is ``held`` by that name for one
        that nobody waits for, from now on.
        """
        tokens, usd = self.job.ledger.hold(held) if held else self.job.ledger.left()
        return Left(
            tokens=tokens, usd=usd, seconds=max(math.ceil(self.job.ledger.time_left(self.now)), 1)
        )

    def until_deadline(self) -> timedelta | None:
        """How long an activity may take with all its waits, in whole seconds: the server knows of
        the clock, not of work.
        """
        left = None if self.job.ledger.repeats else self.job.ledger.deadline_left(self.now)
        return None if left is None else timedelta(seconds=max(math.ceil(left), 1))

    def _look(self, worked: float | None) -> None:
        self._before = (self.now, self.idle, self.job.ledger.worked, worked)
        self.unrecorded = workflow.time()
        self._pass(self.unrecorded, worked)
        self.inbox += self.arrived
        self.arrived = []
        self.condense_asked |= self.condense_arrived
        self.condense_arrived = False
        for look in self.looking:
            look()

    def _pass(self, until: float, worked: float | None) -> None:
        """Time has passed ``until`` then, of which so many seconds are the job's; see ``after``."""
        gap, self.now = until - self.now, until
        if gap > 0:
            # An activity measures by its own host's clock, so what it says is bounded by the gap
            # that the server saw.
            worked = gap if worked is None else min(gap, max(worked, 0.0))
            self.job.ledger.work(worked)
            self.idle = gap - worked
