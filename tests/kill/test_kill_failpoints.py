"""Killed at every named fail point, and given the same command again, a job ends as one that nobody killed."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.kill.failpoints import GROUPS, TURNS, named_in_the_source, tried
from tests.kill.oracle import Moment, check_once, record
from tests.kill.scene import Scene


def test_every_fail_point_is_tried() -> None:
    """The table of fail points names those of the source, all of them and no other."""
    assert tried() == named_in_the_source()


@pytest.mark.kill
@pytest.mark.server
@pytest.mark.parametrize("group", GROUPS)
def test_a_kill_at_a_fail_point_changes_nothing(group: str, tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    """Dead at each point of a group in turn, the job has the result, the statements and the prompts of an undisturbed one."""
    with Scene.open(tmp_path, TURNS) as scene:
        kills = []
        for point in GROUPS[group]:
            process = scene.start(failpoint=point)
            assert process.wait(timeout=120) == -signal.SIGKILL, f"{point}: the process did not come by"
            assert scene.once().exists(), f"{point}: something else killed the process"
            scene.nothing_left()
            kills.append(Moment.of(scene))
        scene.start()
        assert record(scene, scene.finish()) == undisturbed
        check_once(scene, kills)
        scene.replay()
