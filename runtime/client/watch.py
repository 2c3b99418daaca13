"""Following the jobs of a plan until all have ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from temporalio.service import RPCError, RPCStatusCode

from runtime.base.errors import ServerError
from runtime.base.values import JobKey
from runtime.client.control import Control, Standing, Trouble
from runtime.client.plans import JobPlan, Plan, Start
from workflows.messages import JobOutcome, JobProgress

POLL_SECONDS = 0.4
AT_A_TIME = 16
"""Jobs that are asked at a time."""

_PASSING = {
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.CANCELLED,
}
"""What a server answers that is restarted or busy: the jobs are safe in it, so it is waited for."""


@dataclass(frozen=True)
class Turn:
    """A job has come to another turn or phase, or to another failed attempt of what it does now."""

    key: JobKey
    progress: JobProgress
    trouble: Trouble | None = None


@dataclass(frozen=True)
class Ended:
    """A job has ended."""

    outcome: JobOutcome


@dataclass(frozen=True)
class Silent:
    """The server does not answer, for the ``reason`` given; it is asked again."""

    reason: str


Event = Turn | Ended | Silent


class Watch:
    """Follows the jobs of ``plan`` that have not ended yet."""

    def __init__(self, control: Control, plan: Plan) -> None:
        self._control = control
        self._plan = plan
        self._pending = {job.spec.id: job for job in plan.jobs if job.start is not Start.DONE}
        self._seen: dict[str, tuple[object, ...]] = {}
        self._silent = False

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

        jobs = [job for name, job in self._pending.items() if name not in waiting]
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
                events.append(event)
        return events

    def _event(self, job: JobPlan, standing: Standing) -> Event | None:
        name = job.spec.id
        if standing.outcome is not None:
            del self._pending[name]
            return Ended(standing.outcome)
        progress = standing.progress
        if progress is None:
            return None
        trouble = standing.trouble
        now = (progress.turn, progress.phase, trouble.attempt if trouble else 0)
        if self._seen.get(name) == now:
            return None
        self._seen[name] = now
        return Turn(self._key(job), progress, trouble)

    def _key(self, job: JobPlan) -> JobKey:
        return JobKey(batch=self._plan.batch, job=job.spec.id)
