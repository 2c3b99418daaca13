"""What open jobs come to: each is asked in turn while that changes, and ever more seldom while it
does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from itertools import islice

from temporalio.service import RPCError

from runtime.base.values import JobKey
from runtime.client.control import Control
from runtime.client.standing import Running, Standing, Trouble
from runtime.job.phases import Phase
from runtime.server.away import is_passing
from runtime.server.gathered import gathered
from workflows.messages import JobProgress

POLL_SECONDS = 0.4
MOST_ASKED = 64
"""Jobs that are asked in one round."""

MOST_PAUSE, MOST_ASLEEP = 4, 24
"""Rounds, of ``POLL_SECONDS`` each, that a job is left alone of which nothing new was heard for
long, and one that sleeps.
"""


@dataclass(frozen=True)
class Turn:
    """A job has come to another turn or phase, to another failed attempt of what it does now, to a
    call that ``awaits`` the workers of a queue, or a command of its has printed another line.
    """

    key: JobKey
    progress: JobProgress
    trouble: Trouble | None = None
    running: Running | None = None
    awaits: str = ""


@dataclass
class _Pause:
    """For how many rounds a job is left alone: twice as many each time that it had no news."""

    until: int = 0
    rounds: int = 1
    most: int = MOST_PAUSE

    def is_over(self, now: int) -> bool:
        """Whether it is asked in round ``now``; if so, the next pause begins."""
        if now < self.until:
            return False
        pause = min(self.rounds, self.most)
        self.until, self.rounds = now + pause + 1, 2 * pause
        return True

    def begin_again(self, progress: JobProgress) -> None:
        """There was news: it is asked in the next round."""
        self.until, self.rounds = 0, 1
        self.most = MOST_ASLEEP if progress.phase is Phase.ASLEEP else MOST_PAUSE


class Moves:
    """What was heard of open jobs, by their names."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[object, ...]] = {}
        self._pauses: dict[str, _Pause] = {}

    def is_due(self, name: str, now: int) -> bool:
        """Whether a job is asked in round ``now``; if so, its next pause begins."""
        return self._pauses.setdefault(name, _Pause()).is_over(now)

    def is_asleep(self, name: str) -> bool:
        """Whether a job was asleep when it was asked last."""
        pause = self._pauses.get(name)
        return pause is not None and pause.most == MOST_ASLEEP

    def turn(self, name: str, key: JobKey, standing: Standing) -> Turn | None:
        """What is new of a job that stands so; None if nothing is, or no worker tells."""
        progress, trouble = standing.progress, standing.trouble
        if progress is None:
            return None
        failed = (trouble.attempt, trouble.held) if trouble else (0, False)
        now = (progress.turn, progress.phase, failed, standing.running, standing.awaits)
        if self._seen.get(name) == now:
            return None
        self._seen[name] = now
        self._pauses.setdefault(name, _Pause()).begin_again(progress)
        return Turn(key, progress, trouble, standing.running, standing.awaits)

    def forget(self, name: str) -> None:
        """A job has ended: what is kept is of the open ones, however many there are."""
        self._seen.pop(name, None)
        self._pauses.pop(name, None)


async def moves_of(control: Control, keys: Sequence[JobKey]) -> AsyncGenerator[Turn]:
    """What jobs come to, each until its newest run has ended. A server that does not answer is
    asked again.
    """
    moves, now = Moves(), 0
    pending = {str(key): key for key in keys}
    while pending:
        # No more are looked at: whoever is found due has its next pause begun.
        due = (name for name in pending if moves.is_due(name, now))
        asked = list(islice(due, MOST_ASKED))
        try:
            standings = await gathered(control.standing, [pending[name] for name in asked])
        except RPCError as error:
            if not is_passing(error):
                raise
            standings = []
        for name, standing in zip(asked, standings, strict=False):
            # To the end of the line: a dict keeps its keys in the order in which they came.
            key = pending.pop(name)
            if standing is None or standing.outcome is not None:
                continue
            pending[name] = key
            if (turn := moves.turn(name, key, standing)) is not None:
                yield turn
        now += 1
        await asyncio.sleep(POLL_SECONDS)
