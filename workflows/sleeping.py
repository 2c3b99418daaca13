"""A sleeping job in Temporal: timers and short readings, no model call and nothing that holds a
worker (docs/design.md section 5).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from runtime.context.sources import ReadResult
    from runtime.job.stops import Stop
    from workflows.effects import Effects
    from workflows.moment import Moment, arrival, one_event
    from workflows.patches import EACH_WAIT, GATED_FIRST, MARKS, REGROUPED, patched
    from workflows.preparing import Preparing
    from workflows.replaying import Replaying
    from workflows.sub_jobs import SubJobs


class Asleep:
    """The sleep of a job. ``go_on_if_full`` has it go on in another run, if this one is full."""

    def __init__(
        self,
        moment: Moment,
        effects: Effects,
        preparing: Preparing,
        sub_jobs: SubJobs,
        replaying: Replaying,
        go_on_if_full: Callable[[], Awaitable[None]],
    ) -> None:
        self._moment = moment
        self._effects = effects
        self._preparing = preparing
        self._sub_jobs = sub_jobs
        self._replaying = replaying
        self._go_on_if_full = go_on_if_full

    async def sleep(self) -> Stop | None:
        """Sleep as the last statement asked for it, until the job is woken; a stop, if it outlives
        its budget meanwhile.
        """
        job, sleeping, moment = self._moment.job, self._moment.job.sleeping, self._moment
        await self._repeat()
        await self._prepare(moment.now)
        await self._meet()
        while (alarm := sleeping.alarm(job.graph)) is not None:
            # Before what has arrived is looked at: with a record it comes at a later turn.
            if patched(GATED_FIRST):
                if (stop := await self._replaying.begin_turn_anew()) is not None:
                    return stop
                if moment.answers.interim is not None:
                    await self._repeat()
                    continue
            now = moment.now
            if moment.inbox:
                sleeping.wake("a message", now)
            # ``ended`` has woken the job: the loop's head sees that there is no alarm any more.
            elif sleeping.ended(job.graph, self._sub_jobs.heard_of, now):
                continue
            elif (stop := await self._replaying.stop_behind_a_wait()) is not None:
                return stop
            elif moment.answers.interim is not None:
                # The run was reset to behind this sleep, and follows a record from here on.
                await self._repeat()
            elif alarm <= now:
                await self._look(now)
                await self._go_on_if_full()
            else:
                await self._pass_time(min(alarm - now, job.ledger.time_left(now)))
        return None

    async def _repeat(self) -> None:
        """Sleep, and wake, as in the record that is followed, if there is one."""
        sleeping = self._moment.job.sleeping
        if (interim := self._moment.answers.interim) is not None:
            if patched(EACH_WAIT):
                sleeping.await_all(self._moment.job.graph)
            for at in sleeping.left_of(interim):
                await self._look(at, repeated=True)
            sleeping.repeat(interim)

    async def _prepare(self, now: float) -> bool:
        """Begin what the sleeping job prepares.

        Whether that waited for something within the worker.
        """
        return self._moment.job.sleeping.state is not None and await self._preparing.begin(now)

    async def _meet(self) -> None:
        """Wait for one event of the server, and see what has arrived before it.

        A message that comes in while a verdict is recorded, or a group's material kept, stands
        before it live and after it in a replay, see ``Moment``. A sleep that is not slept because
        of such a message would have a timer in the replay alone.
        """
        if self._moment.job.sleeping.state is not None:
            await self._moment.after(one_event("falling asleep"), lambda _: 0.001)

    async def _pass_time(self, seconds: float) -> None:
        """Let time pass, until a message or something prepared arrives at the latest.

        It is the job's, no more than it asked for.
        """
        # A timer of no time fires at once, and the loop would never wait for an event.
        seconds = max(seconds, 0.001)
        something = arrival(
            lambda: (
                bool(self._moment.arrived)
                or bool(self._sub_jobs.arrived)
                or self._preparing.arrived
            ),
            timedelta(seconds=seconds),
            "asleep",
        )
        await self._moment.after(something, lambda _: seconds)

    async def _look(self, at: float, *, repeated: bool = False) -> None:
        """A tick of the sleeping job.

        A ``repeated`` one is of a sleep that is followed in a record.
        """
        job, sleeping = self._moment.job, self._moment.job.sleeping
        # A look that nobody would see the result of is not made.
        if not repeated and sleeping.is_over(job.graph, at):
            return
        await self._preparing.apply(at)
        if (state := sleeping.state) is None:
            return
        due = job.due_asleep(at, all_of_them=repeated)
        marked = job.graph.marked(due) and patched(MARKS)
        results: tuple[ReadResult, ...] = ()
        if due:
            looked = self._effects.look(due, job.turn, state, marked=marked)
            results = (await self._moment.after(looked, lambda read: read.worked)).results
        regrouped = patched(REGROUPED)
        job.tick_asleep(results, at, marked=marked, repeated=repeated, regrouped=regrouped)
        if await self._prepare(at):
            await self._meet()
