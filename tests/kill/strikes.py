"""Kills at moments chosen by a seed: which event of the job, how many commits of the server later,
and who is killed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

from tests.kill.processes import wait_for
from tests.kill.scene import Scene
from workflows.continuing import CHECKPOINT_TURNS


class Victim(StrEnum):
    """Whom a strike kills.

    ``WORKER`` and its interpreter processes; the server lives on, and the other way round.
    """

    WORKER = "worker"
    SERVER = "server"
    EVERYTHING = "worker and server"


class Mark(StrEnum):
    """What a strike waits for, of one turn."""

    ATTEMPT = "the request is archived"
    REQUEST = "the endpoint received the request"
    RESPONSE = "the endpoint sent the reply"
    STEP = "the reply is archived"
    CONTINUES = "the checkpoint with which its run ends, or that of a later turn, is archived"


IN_A_TURN = (Mark.ATTEMPT, Mark.REQUEST, Mark.RESPONSE, Mark.STEP)

MOST_COMMITS = 8
"""A turn without effects makes about this many writes to the server's database."""

STRUCK: dict[str, tuple[tuple[Victim, ...], tuple[int, ...]]] = {
    "workers": ((Victim.WORKER,) * 5, (1, 2)),
    "servers": ((Victim.SERVER,) * 3, (3,)),
    "everything": ((Victim.EVERYTHING, Victim.SERVER, Victim.EVERYTHING), (4,)),
}
"""Who is killed in one job, in order, and with which seeds that is tried."""


LONG_VICTIMS = (*(Victim.WORKER,) * 3, Victim.SERVER, Victim.EVERYTHING)
"""Who is killed in a long job: most often the worker."""


CONTINUED_TURNS = 72
CONTINUED_SEEDS = (5,)
"""The job that goes on in many runs, and the seeds with which it is struck."""


@dataclass(frozen=True)
class Strike:
    """Kill ``victim`` as soon as ``mark`` of ``turn`` is reached and the server has committed
    ``commits`` times after it.

    Requests are counted as the turns are, as if none was sent twice.
    """

    turn: int
    mark: Mark
    commits: int
    victim: Victim

    def await_moment(self, scene: Scene) -> None:
        """Return when it is time to strike; progress is all that is waited for."""
        assert scene.process is not None
        wait_for(
            lambda: self._reached(scene),
            f"turn {self.turn}: {self.mark}",
            alive=scene.process,
            seconds=scene.patience,
        )
        wal = scene.home.database.with_name(scene.home.database.name + "-wal")
        for number in range(self.commits):
            last = wal.stat().st_mtime_ns
            wait_for(
                lambda last=last: wal.stat().st_mtime_ns != last, f"commit {number} after {self}"
            )  # type: ignore[misc]

    def _reached(self, scene: Scene) -> bool:
        match self.mark:
            case Mark.REQUEST | Mark.RESPONSE:
                name = f"{self.turn:05d}." + (
                    "request" if self.mark is Mark.REQUEST else "response"
                )
                return (scene.requests / name).exists()
            case Mark.ATTEMPT | Mark.STEP:
                ending = "attempt-001" if self.mark is Mark.ATTEMPT else "step"
                return any(
                    (run / f"{self.turn // 100:05d}" / f"{self.turn:07d}.{ending}").exists()
                    for run in scene.turn_folders()
                )
            case Mark.CONTINUES:
                folders = scene.home.archive.glob("*/*/turns/*/*")
                saved = (
                    int(path.name[:7])
                    for folder in folders
                    if int(folder.name) >= self.turn // 100
                    for path in folder.glob("*.checkpoint")
                )
                return any(turn >= self.turn and turn % CHECKPOINT_TURNS for turn in saved)


@dataclass(frozen=True)
class Later:
    """A strike so many turns, or requests, after the newest one at the time when it is planned."""

    turns: int
    mark: Mark
    commits: int
    victim: Victim

    def planned(self, scene: Scene) -> Strike:
        """The strike, planned now."""
        by_request = self.mark in {Mark.REQUEST, Mark.RESPONSE}
        newest = len(scene.received()) if by_request else scene.newest_turn()
        return Strike(newest + self.turns, self.mark, self.commits, self.victim)


def strikes(seed: int, turns: int, victims: tuple[Victim, ...]) -> list[Strike]:
    """One strike for each of ``victims``, at turns spread over the job, each after the one
    before.
    """
    chance = random.Random(seed)
    step = (turns - 2) / len(victims)
    return [
        Strike(
            turn=1 + round(number * step + chance.random() * (step - 1)),
            mark=chance.choice(IN_A_TURN),
            commits=chance.randint(0, MOST_COMMITS),
            victim=victim,
        )
        for number, victim in enumerate(victims)
    ]


def later_strikes(seed: int, kills: int, continuing: int, turns: tuple[int, int]) -> list[Later]:
    """``kills`` strikes at seeded moments, each so many turns after the one before (at least and at
    most).

    Of them ``continuing``, evenly among the others, wait for the job to go on in another run, and
    come at once: its next call is made soon, and they are to be before that.
    """
    chance = random.Random(seed)
    every = kills // continuing
    marks = [
        Mark.CONTINUES if n % every == every - 1 else chance.choice(IN_A_TURN) for n in range(kills)
    ]
    return [
        Later(
            turns=1 if mark is Mark.CONTINUES else chance.randint(*turns),
            mark=mark,
            # Drawn for each, so that what a seed chooses else is the same.
            commits=chance.randint(0, MOST_COMMITS) * (mark is not Mark.CONTINUES),
            victim=chance.choice(LONG_VICTIMS),
        )
        for mark in marks
    ]


def continued_strikes(seed: int) -> list[Later]:
    """Six strikes at a job of ``CONTINUED_TURNS`` turns."""
    return later_strikes(seed, 6, 3, (2, 5))


IN_A_CALL = (Mark.ATTEMPT, Mark.REQUEST, Mark.RESPONSE)


def many_strikes(seed: int, kills: int, anywhere: int) -> list[Later]:
    """``kills`` strikes, one or two turns apart: most at a worker in mid-call, one of ``anywhere``
    as in ``later_strikes``.

    Anywhere includes workflow tasks, whose end by a death the server learns of after a minute.
    """
    chance = random.Random(seed)
    rare = iter(later_strikes(seed, -(-kills // anywhere), max(1, kills // anywhere // 4), (1, 2)))
    return [
        (
            next(rare)
            if number % anywhere == anywhere - 1
            else Later(chance.randint(1, 2), chance.choice(IN_A_CALL), 0, Victim.WORKER)
        )
        for number in range(kills)
    ]
