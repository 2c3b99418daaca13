"""Killed at seeded random moments, its worker, its server or both, a job of 30 turns ends as one that nobody killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kill import experiments
from tests.kill.oracle import differences
from tests.kill.strikes import STRUCK, TURNS, strikes

pytestmark = [pytest.mark.kill, pytest.mark.server]


@pytest.fixture(scope="module")
def undisturbed(bytecode: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The record of the job when nobody kills anything."""
    return experiments.undisturbed(tmp_path_factory.mktemp("undisturbed"), TURNS)


@pytest.mark.parametrize(("name", "seed"), [(name, seed) for name, (_, seeds) in STRUCK.items() for seed in seeds])
def test_kills_at_random_moments_change_nothing(
    name: str, seed: int, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    """The result, the statements, the executions and the prompts are those of the undisturbed job."""
    victims, _ = STRUCK[name]
    survived = experiments.struck(tmp_path, strikes(seed, TURNS, victims), TURNS)
    assert differences(survived.record, undisturbed) == []
