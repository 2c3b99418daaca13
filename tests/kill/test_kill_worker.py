"""A worker alone: killed, and another started, it goes on with jobs whose ``holdfast run`` is gone."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kill.experiments import UNDISTURBED, Survived, resumed_at
from tests.kill.failpoints import TURNS
from tests.kill.oracle import Moment, check_once, differences, record
from tests.kill.processes import processes_of, wait_for
from tests.kill.scene import Scene
from tests.kill.strikes import Mark, Strike, Victim

pytestmark = [pytest.mark.kill, pytest.mark.server]


def test_workers_go_on_without_run(tmp_path: Path, outcome: Callable[[str], Survived]) -> None:
    """``run`` is killed, then a ``worker``; the next worker ends the job, and ``run`` finds it done."""
    with Scene.open(tmp_path, TURNS) as scene:
        moments = []
        for turn in (5, 14):
            process = scene.start(worker=turn > 5)
            Strike(turn, Mark.STEP, 0, Victim.WORKER).await_moment(scene)
            wait_for(
                lambda: any("monty" in command for command in processes_of(scene.home.path).values()),
                "the worker has an interpreter process",
                alive=process,
            )
            # The worker alone: its interpreter processes must see by themselves that it is gone.
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            scene.nothing_left()
            moments.append(Moment.of(scene))
        worker = scene.start(worker=True)
        wait_for(lambda: any(scene.home.archive.glob("*/*/ends/*")), "the job ends", alive=worker)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=60) == 0
        scene.start()
        assert differences(record(scene, scene.finish()), outcome(f"{UNDISTURBED}/{TURNS}").record) == []
        assert (resumed_at(scene)["start"], resumed_at(scene)["turn"]) == ("done", TURNS)
        check_once(scene, moments, kills=len(moments))
        scene.replay()
