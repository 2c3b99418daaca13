"""The kill experiments, as the tests run them and the benchmark reports them."""

from __future__ import annotations

import json
import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kill.failpoints import GROUPS
from tests.kill.oracle import Moment, calls_by_turn, check_once, record
from tests.kill.policy import FAILS_AT
from tests.kill.scene import Scene
from tests.kill.strikes import Strike, Victim


@dataclass(frozen=True)
class Survived:
    """One job that was killed: its record, the number of kills, and by turn its attempts and the calls that were sent."""

    record: dict[str, Any]
    kills: int
    attempts: Counter[int]
    calls: Counter[int]

    @property
    def unfinished(self) -> int:
        """Attempts that a kill broke off."""
        return self.attempts.total() - len(self.attempts)


def undisturbed(path: Path, turns: int) -> dict[str, Any]:
    """The record of a job that nobody kills; each turn is called once."""
    with Scene.open(path, turns) as scene:
        scene.start()
        made = record(scene, scene.finish())
        attempts = check_once(scene, [], kills=0)
        assert {turn for turn, number in attempts.items() if number != 1} == {FAILS_AT}
        return made


def fail_points(path: Path, group: str, turns: int) -> Survived:
    """A job that dies at each fail point of a group in turn."""
    with Scene.open(path, turns) as scene:
        moments = []
        for point in GROUPS[group]:
            process = scene.start(failpoint=point)
            assert process.wait(timeout=120) == -signal.SIGKILL, f"{point}: the process did not come by"
            assert scene.once().exists(), f"{point}: something else killed the process"
            scene.nothing_left()
            moments.append(Moment.of(scene))
        scene.start()
        return _survived(scene, moments, kills=len(moments))


def struck(path: Path, planned: list[Strike], turns: int) -> Survived:
    """A job that is struck again and again; the command is given anew whenever its process was killed."""
    with Scene.open(path, turns) as scene:
        moments = []
        scene.start()
        for strike in planned:
            strike.await_moment(scene)
            if strike.victim is not Victim.WORKER:
                scene.kill_server()
            if strike.victim is not Victim.SERVER:
                scene.kill_run()
                scene.nothing_left()
                moments.append(Moment.of(scene))
                scene.start()
        return _survived(scene, moments, kills=len(planned))


def resumed_at(scene: Scene) -> dict[str, Any]:
    """What the newest process said that it does with the job."""
    said = scene.output().with_suffix(".out").read_text().splitlines()
    (job,) = json.loads(said[0])["jobs"]
    return dict(job)


def _survived(scene: Scene, moments: list[Moment], *, kills: int) -> Survived:
    made = record(scene, scene.finish())
    attempts = check_once(scene, moments, kills=kills)
    scene.replay()
    return Survived(made, kills, attempts, calls_by_turn(scene))
