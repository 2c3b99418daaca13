"""Kills at moments chosen by a seed: which event of the job, how many commits of the server later, and who is killed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

from tests.kill.processes import wait_for
from tests.kill.scene import Scene


class Victim(StrEnum):
    """Whom a strike kills. ``WORKER`` and its interpreter processes; the server lives on, and the other way round."""

    WORKER = "worker"
    SERVER = "server"
    EVERYTHING = "worker and server"


class Mark(StrEnum):
    """What a strike waits for, of one turn."""

    ATTEMPT = "the request is archived"
    REQUEST = "the endpoint received the request"
    RESPONSE = "the endpoint sent the reply"
    STEP = "the reply is archived"


MOST_COMMITS = 8
"""A turn without effects makes about this many writes to the server's database."""


TURNS = 30

STRUCK: dict[str, tuple[tuple[Victim, ...], tuple[int, ...]]] = {
    "workers": ((Victim.WORKER,) * 5, (1, 2)),
    "servers": ((Victim.SERVER,) * 3, (3,)),
    "everything": ((Victim.EVERYTHING, Victim.SERVER, Victim.EVERYTHING), (4,)),
}
"""Who is killed in one job, in order, and with which seeds that is tried."""


@dataclass(frozen=True)
class Strike:
    """Kill ``victim`` as soon as ``mark`` of ``turn`` is reached and the server has committed ``commits`` times after it."""

    turn: int
    mark: Mark
    commits: int
    victim: Victim

    def await_moment(self, scene: Scene) -> None:
        """Return when it is time to strike; progress is all that is waited for."""
        assert scene.process is not None
        wait_for(lambda: self._reached(scene), f"turn {self.turn}: {self.mark}", alive=scene.process)
        wal = scene.home.database.with_name(scene.home.database.name + "-wal")
        for number in range(self.commits):
            last = wal.stat().st_mtime_ns
            wait_for(lambda last=last: wal.stat().st_mtime_ns != last, f"commit {number} after {self}")  # type: ignore[misc]

    def _reached(self, scene: Scene) -> bool:
        match self.mark:
            case Mark.REQUEST | Mark.RESPONSE:
                name = f"{self.turn:05d}." + ("request" if self.mark is Mark.REQUEST else "response")
                return (scene.requests / name).exists()
            case Mark.ATTEMPT | Mark.STEP:
                ending = "attempt-001" if self.mark is Mark.ATTEMPT else "step"
                return any(scene.home.archive.glob(f"*/*/turns/*/*/{self.turn:07d}.{ending}"))


def strikes(seed: int, turns: int, victims: tuple[Victim, ...]) -> list[Strike]:
    """One strike for each of ``victims``, at turns spread over the job, each after the one before."""
    chance = random.Random(seed)
    step = (turns - 2) / len(victims)
    return [
        Strike(
            turn=1 + round(number * step + chance.random() * (step - 1)),
            mark=chance.choice(list(Mark)),
            commits=chance.randint(0, MOST_COMMITS),
            victim=victim,
        )
        for number, victim in enumerate(victims)
    ]
