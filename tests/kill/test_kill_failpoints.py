"""Killed at every named fail point, and given the same command again, a job ends as one that nobody killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kill import experiments
from tests.kill.failpoints import GROUPS, TURNS, named_in_the_source, tried
from tests.kill.oracle import differences


def test_every_fail_point_is_tried() -> None:
    """The table of fail points names those of the source, all of them and no other."""
    assert tried() == named_in_the_source()


@pytest.mark.kill
@pytest.mark.server
@pytest.mark.parametrize("group", GROUPS)
def test_a_kill_at_a_fail_point_changes_nothing(group: str, tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    """Dead at each point of a group in turn, the job has the result, the statements and the prompts of an undisturbed one."""
    assert differences(experiments.fail_points(tmp_path, group, TURNS).record, undisturbed) == []
