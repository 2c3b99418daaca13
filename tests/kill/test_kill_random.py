"""Killed at seeded random moments, its worker, its server or both, a job of 30 turns ends as one that nobody killed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.durability import BLOCK, kill_row
from benchmarks.readme import block_of
from tests.kill.experiments import Survived, names, reference
from tests.kill.oracle import differences
from tests.kill.processes import ROOT

README = ROOT / "README.md"


@pytest.mark.kill
@pytest.mark.server
@pytest.mark.parametrize("experiment", [name for name in names() if name.startswith("struck/")])
def test_kills_at_random_moments_change_nothing(experiment: str, outcome: Callable[[str], Survived]) -> None:
    """The result, the statements, the executions and the prompts are those of the undisturbed job."""
    undisturbed = outcome(reference(experiment))
    killed = outcome(experiment)
    assert differences(killed.record, undisturbed.record) == []
    assert kill_row(experiment, killed, undisturbed) in block_of(README.read_text(), BLOCK).splitlines()
