"""Following the jobs of a plan until all have ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from temporalio.service import RPCError

from runtime.base.errors import ServerError
from runtime.base.values import JobKey
from runtime.client.control import Control
from runtime.client.moves import MOST_ASKED, POLL_SECONDS, Moves, Turn
from runtime.client.plans import JobPlan, Plan, Start
from runtime.client.standing import Standing
from runtime.job.stops import JobStatus
from runtime.server.away import is_passing
from runtime.server.gathered import gathered
from workflows.messages import BatchNews, JobOutcome

_KNOWN = (Start.RERUN, Start.RESUMED)
"""Jobs that have had a run when the plan was made, of which the batch may tell as well."""

_FEW = 4
"""So few open jobs are asked in every round, but for those that sleep."""

LAST_TRIES = 3
"""How often a batch that has ended is asked for what it had to tell, if no worker answers."""

MOST_TOLD = 50
"""How often a batch is asked that answers and does not know yet that a job has ended."""

MOST_STILL = 5
"""Rounds after which a batch is asked again all of whose open jobs sleep."""


@dataclass(frozen=True)
class Ended:
    """A job has ended."""

    outcome: JobOutcome


@dataclass(frozen=True)
class Silent:
    """The server does not answer, for the ``reason`` given; it is asked again."""

    reason: str


@dataclass(frozen=True)
class Retried:
    """A run of a job has failed, and the batch starts the job again, as try ``again``."""

    outcome: JobOutcome
    again: int


Event = Turn | Ended | Retried | Silent


class Watch:
    """Follows the jobs of ``plan`` that have not ended yet.

    Its batch is asked in each round, and tells which jobs run, and how others have ended: what a
    round costs does not grow with the batch. The jobs that run are asked what they do: each round
    while that changes, and ever more seldom while it does not; and ``MOST_ASKED`` in one round.
    While all that run sleep, their batch is left alone for up to ``MOST_STILL`` rounds.
    """

    def __init__(self, control: Control, plan: Plan) -> None:
        self._control = control
        self._plan = plan
        done = {job.id for job in plan.counted(Start.DONE)}
        self._pending = dict.fromkeys(id for id in plan.ids if id not in done)
        """The jobs that have not ended, those first that were not asked for the longest time."""
        self._moves = Moves()
        self._silent = False
        self._known = 0
        self._more = False
        self._first = True
        self._over = False
        self._events: list[Event] = []
        """What has happened and is not told yet."""
        self._now, self._still = 1, 1
        self._doubtful = {
            job.id for job in plan.counted(Start.RESUMED, Start.LOST) if job.outcome is None
        }
        """Jobs whose batch may not tell of them: they are asked themselves."""
        self._final: dict[str, str] = {}
        """The runs of such jobs that the batch has said it does not start again after."""

    async def events(self) -> AsyncGenerator[Event]:
        """What happens, as it happens, until the last job has ended.

        Raises:
            ServerError: if a job that was submitted is neither there nor going to be started.
        """
        ending = asyncio.create_task(self._control.batch_end(self._plan.batch))
        try:
            while self._pending:
                # What a round asks for may be from before an end that comes meanwhile.
                ended = ending.done()
                for event in await self._happened():
                    yield event
                self._now += self._still
                # No pause while the batch has more ends to tell: it tells so many at a time.
                if self._pending and not self._more:
                    if ended:
                        await asyncio.sleep(POLL_SECONDS * self._still)
                    else:
                        await asyncio.wait({ending}, timeout=POLL_SECONDS * self._still)
        finally:
            ending.cancel()

    async def _happened(self) -> list[Event]:
        try:
            await self._round()
        except RPCError as error:
            if not is_passing(error):
                raise
            # Said once, however often it is asked again.
            if not self._silent:
                self._events.append(Silent(error.message))
            self._silent = True
        else:
            self._silent = False
        happened, self._events = self._events, []
        return happened

    async def _round(self) -> None:
        """Ask once for the batch, and for jobs that may have begun."""
        news = await self._control.batch_news(self._plan.batch, self._known)
        # Kept at once: what the batch has told it does not tell again, whatever follows.
        self._events += await self._told_at_its_end() if news is None else self._told(news)
        jobs = [self._plan.of(name) for name in self._asked(news)]
        standings = await gathered(self._control.standing, map(self._key, jobs))
        for job, standing in zip(jobs, standings, strict=True):
            if standing is None or standing.run == job.before:
                # Asked in this order, a job that a batch at its end has not started is never
                # started by it.
                if news is None:
                    became = await self._control.left_by(self._plan.batch)
                    raise ServerError(f"job {self._key(job)} {became}. Give the same command again")
                continue
            event = self._event(job, standing, over=news is None)
            if event is not None:
                self._events.append(event)
        is_still = not self._events and news is not None and self._all_sleep(news)
        self._still = min(2 * self._still, MOST_STILL) if is_still else 1

    def _all_sleep(self, news: BatchNews) -> bool:
        """Whether jobs run, and all of them were asleep when they were asked last."""
        running = [name for name in news.open if name in self._pending]
        return bool(running) and all(map(self._moves.is_asleep, running))

    def _told(self, news: BatchNews) -> list[Event]:
        """What the batch says has happened since the round before; nothing if nobody answers."""
        if news == BatchNews():
            self._more = False
            return []
        # The batch no longer tells of ends between the two: any job may be among them.
        if news.first > self._known and not self._first:
            self._doubtful |= self._pending.keys()
        events: list[Event] = []
        for end in news.ends:
            name = end.outcome.key.job
            # Told before, or a job of another command's file.
            if name not in self._pending:
                continue
            job = self._plan.of(name)
            if not end.outcome.run or (self._first and job.start in _KNOWN):
                # How it ended is not told, or this may be the end of a run before.
                self._doubtful.add(name)
                if not end.again:
                    self._final[name] = end.outcome.run
            elif end.again:
                events.append(Retried(end.outcome, end.again))
            else:
                self._forget(name)
                events.append(Ended(end.outcome))
        self._known = max(news.first + len(news.ends), self._known)
        self._more = self._known < news.total
        self._first = self._first and self._more
        return events

    async def _told_at_its_end(self) -> list[Event]:
        """What a batch that has ended says has happened since the round before it did.

        It is asked in one round, and only where it may tell what no job tells of itself: that it
        was started again.
        """
        tries, self._over = 0 if self._over else LAST_TRIES, True
        events: list[Event] = []
        while tries and not self._pending.keys().isdisjoint(self._plan.tries):
            news = await self._control.last_news(self._plan.batch, self._known)
            events += self._told(news)
            if news == BatchNews():
                tries -= 1
            elif not self._more:
                break
        return events

    def _asked(self, news: BatchNews | None) -> list[str]:
        """The jobs that are asked in this round, those first that were not for the longest time."""
        if news is None:
            return list(self._pending)
        silent = news == BatchNews()
        runs = set(news.open)
        asked: list[str] = []
        for name in self._pending:
            if len(asked) == MOST_ASKED:
                break
            if silent or name in runs or name in self._doubtful:
                told = silent or name in runs
                if self._moves.is_due(name, self._now) or self._few(name) or not told:
                    asked.append(name)
        # To the end of the line: a dict keeps its keys in the order in which they came.
        for name in asked:
            self._pending[name] = self._pending.pop(name)
        return asked

    def _forget(self, name: str) -> None:
        """A job has ended: what is kept is of the open ones, however many there are."""
        del self._pending[name]
        self._moves.forget(name)
        self._doubtful.discard(name)
        self._final.pop(name, None)

    def _few(self, name: str) -> bool:
        """Whether so few jobs are open that each that is awake is asked in every round: who
        interrupts them is told of the last moment.
        """
        return len(self._pending) <= _FEW and not self._moves.is_asleep(name)

    def _event(self, job: JobPlan, standing: Standing, *, over: bool) -> Event | None:
        name = job.id
        if standing.outcome is not None:
            over = over or self._final.get(name) == standing.run
            if not over and self._may_begin_again(job, standing.outcome):
                return None
            self._forget(name)
            return Ended(standing.outcome)
        return self._moves.turn(name, self._key(job), standing)

    def _key(self, job: JobPlan) -> JobKey:
        return JobKey(batch=self._plan.batch, job=job.id)

    def _may_begin_again(self, job: JobPlan, outcome: JobOutcome) -> bool:
        """Whether the batch may start the job again: then it is the batch that says so, or not."""
        retry = self._plan.tries.get(job.id)
        return (
            retry is not None and outcome.status is JobStatus.FAILED and outcome.cause in retry.on
        )


async def until_told(
    control: Control, batch: str, own: frozenset[str], asked: asyncio.Event
) -> None:
    """Wait until the batch, whose jobs ``own`` have ended, has ended too, and has told of that
    (``on_finish``); or has others' jobs, or somebody has ``asked`` to stop. The tries at telling
    are bounded. A server that is away is asked again.

    Needs a worker of the batch. One that leaves when it has heard of the last end by itself leaves
    a batch that has not heard of it, and stays open for whoever watches it.
    """
    ending = asyncio.create_task(control.batch_end(batch))
    stopping = asyncio.create_task(asked.wait())
    # It ends as a rule in the moment in which its last job does.
    waits, still_open = {ending, stopping}, 0
    try:
        while still_open < MOST_TOLD:
            await asyncio.wait(waits, timeout=POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if asked.is_set():
                return
            waits = {stopping}
            try:
                news = await control.batch_news(batch, 0)
            except RPCError as error:
                if not is_passing(error):
                    raise
                continue
            if news is None or news.waiting or not own.issuperset(news.open):
                return
            still_open += bool(news.open)
    finally:
        ending.cancel()
        stopping.cancel()
