"""Killed in the middle of a condensation and around it, a job ends as one that nobody killed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kill.experiments import CONDENSING, Survived
from tests.kill.oracle import differences


@pytest.mark.kill
@pytest.mark.server
@pytest.mark.parametrize("experiment", ["condensation/killed"])
def test_a_kill_during_a_condensation_changes_nothing(experiment: str, outcome: Callable[[str], Survived]) -> None:
    """Dead before, in and behind the call for a summary, the job forgets the same events behind the same words."""
    undisturbed, killed = outcome(CONDENSING), outcome(experiment)
    assert (undisturbed.summaries, killed.summaries) == ((1, 1), (2, 1)), (
        "one kill broke off a reply, one came behind it"
    )
    condensed = [record for turn in undisturbed.record["turns"] for record in turn["condensations"]]
    assert [record["condenser"] for record in condensed] == ["llm_summary", "llm_summary"]
    assert all(record["summary"] and "failures" not in record for record in condensed)
    assert differences(killed.record, undisturbed.record) == []
