"""Following the jobs of a plan until all have ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from temporalio.service import RPCError, RPCStatusCode

from runtime.base.errors import ServerError
from runtime.base.values import JobKey
from runtime.client.control import Control, Running, Standing, Trouble
from runtime.client.plans import JobPlan, Plan, Start
from runtime.job.phases import Phase
from workflows.messages import BatchState, JobOutcome, JobProgress

POLL_SECONDS = 0.4
AT_A_TIME = 16
"""Jobs that are asked at a time."""

MOST_PAUSE, MOST_ASLEEP = 4, 24
_FEW = 4
"""Rounds, of ``POLL_SECONDS`` each, that a job is left alone of which nothing new was heard for
long, and one that sleeps.
"""

_PASSING = {
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.CANCELLED,
}
"""What a server answers that is restarted or busy: the jobs are safe in it, so it is waited for."""


@dataclass(frozen=True)
class Turn:
    """A job has come to another turn or phase, to another failed attempt of what it does now, or a
    command of its has printed another line.
    """

    key: JobKey
    progress: JobProgress
    trouble: Trouble | None = None
    running: Running | None = None


@dataclass(frozen=True)
class Ended:
    """A job has ended."""

    outcome: JobOutcome


@dataclass(frozen=True)
class Silent:
    """The server does not answer, for the ``reason`` given; it is asked again."""

    reason: str


Event = Turn | Ended | Silent


@dataclass
class _Pause:
    """For how many rounds a job is left alone: twice as many each time that it had no news."""

    left: int = 0
    next: int = 1
    most: int = MOST_PAUSE

    def is_over(self) -> bool:
        """Whether it is asked in this round; if so, the next pause begins."""
        if self.left:
            self.left -= 1
            return False
        self.left, self.next = min(self.next, self.most), 2 * min(self.next, self.most)
        return True

    def begin_again(self, progress: JobProgress) -> None:
        """There was news: it is asked in the next round."""
        self.left, self.next = 0, 1
        self.most = MOST_ASLEEP if progress.phase is Phase.ASLEEP else MOST_PAUSE


class Watch:
    """Follows the jobs of ``plan`` that have not ended yet.

    Its batch is asked in each round, and tells which jobs have ended. The jobs themselves are asked
    what they do: each round while that changes, and ever more seldom while it does not.
    """

    def __init__(self, control: Control, plan: Plan) -> None:
        self._control = control
        self._plan = plan
        self._pending = {job.spec.id: job for job in plan.jobs if job.start is not Start.DONE}
        self._seen: dict[str, tuple[object, ...]] = {}
        self._silent = False
        self._pauses: dict[str, _Pause] = {}

    async def events(self) -> AsyncGenerator[Event]:
        """What happens, as it happens, until the last job has ended.

        Raises:
            ServerError: if a job that was submitted is neither there nor going to be started.
        """
        while self._pending:
            try:
                found = await self._round()
            except RPCError as error:
                if error.status not in _PASSING:
                    raise
                found = [] if self._silent else [Silent(error.message)]
                self._silent = True
            else:
                self._silent = False
            for event in found:
                yield event
            if self._pending:
                await asyncio.sleep(POLL_SECONDS)

    async def _round(self) -> list[Event]:
        """Ask once for every job that may have begun."""
        state = await self._control.batch_state(self._plan.batch)
        waiting = set(state.waiting) if state is not None else set()
        limit = asyncio.Semaphore(AT_A_TIME)

        async def look(job: JobPlan) -> Standing | None:
            async with limit:
                return await self._control.standing(self._key(job))

        jobs = [
            job
            for name, job in self._pending.items()
            if name not in waiting
            and (self._pause(name).is_over() or _nobody_tells(state, name) or self._few(name))
        ]
        events = []
        for job, standing in zip(jobs, await asyncio.gather(*map(look, jobs)), strict=True):
            if standing is None or standing.run == job.before:
                # Asked in this order, a job that a batch at its end has not started is never
                # started by it.
                if state is None:
                    raise ServerError(
                        f"job {self._key(job)} was not started: its batch's workflow was ended from"
                        " outside. Give the same command again"
                    )
                continue
            event = self._event(job, standing)
            if event is not None:
                if isinstance(event, Turn):
                    self._pause(job.spec.id).begin_again(event.progress)
                events.append(event)
        return events

    def _few(self, name: str) -> bool:
        """Whether so few jobs are open that each that is awake is asked in every round: who
        interrupts them is told of the last moment.
        """
        return len(self._pending) <= _FEW and self._pause(name).most == MOST_PAUSE

    def _pause(self, name: str) -> _Pause:
        return self._pauses.setdefault(name, _Pause())

    def _event(self, job: JobPlan, standing: Standing) -> Event | None:
        name = job.spec.id
        if standing.outcome is not None:
            del self._pending[name]
            return Ended(standing.outcome)
        progress = standing.progress
        if progress is None:
            return None
        trouble = standing.trouble
        failed = trouble.attempt if trouble else 0
        now = (progress.turn, progress.phase, failed, standing.running)
        if self._seen.get(name) == now:
            return None
        self._seen[name] = now
        return Turn(self._key(job), progress, trouble, standing.running)

    def _key(self, job: JobPlan) -> JobKey:
        return JobKey(batch=self._plan.batch, job=job.spec.id)


def _nobody_tells(state: BatchState | None, name: str) -> bool:
    """Whether the job itself must be asked: its batch says that it has ended, or follows another
    run of it, or none.
    """
    return state is None or (state != BatchState() and name not in state.open)
