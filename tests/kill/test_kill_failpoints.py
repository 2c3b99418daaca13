"""Killed at every named fail point, and given the same command again, a job ends as one that nobody killed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.durability import BLOCK, kill_row
from benchmarks.readme import block_of
from tests.kill.experiments import Survived, names, reference
from tests.kill.failpoints import named_in_the_source, tried
from tests.kill.oracle import differences
from tests.kill.processes import ROOT

README = ROOT / "README.md"


def test_every_fail_point_is_tried() -> None:
    """The table of fail points names those of the source, all of them and no other."""
    assert tried() == named_in_the_source()


@pytest.mark.kill
@pytest.mark.server
@pytest.mark.parametrize("experiment", [name for name in names() if name.startswith(("failpoints/", "checkpoint/"))])
def test_a_kill_at_a_fail_point_changes_nothing(experiment: str, outcome: Callable[[str], Survived]) -> None:
    """Dead at each point of a group in turn, the job has the result, the statements and the prompts of an undisturbed one."""
    undisturbed = outcome(reference(experiment))
    killed = outcome(experiment)
    assert differences(killed.record, undisturbed.record) == []
    assert kill_row(experiment, killed, undisturbed) in block_of(README.read_text(), BLOCK).splitlines()
