"""A context that grows with each call does not grow the history with it."""

from __future__ import annotations

import statistics
from itertools import pairwise
from pathlib import Path

import pytest
from temporalio.testing import WorkflowEnvironment

from benchmarks.growing_context import measure

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture
def temporal(hurried: WorkflowEnvironment) -> WorkflowEnvironment:
    """Jobs go on in other runs meanwhile."""
    return hurried


async def test_history_grows_by_what_is_new(temporal: WorkflowEnvironment, tmp_path: Path) -> None:
    """With 2,090 tokens more in each prompt, the last calls add to the history what the first
    added.
    """
    grown = await measure(temporal.client, tmp_path, calls=16)
    assert grown[-1].prompt_tokens > 14 * 2_090
    added = [after.history_bytes - before.history_bytes for before, after in pairwise(grown[2:-1])]
    # Medians: where a run goes on in another, the checkpoint comes on top.
    assert statistics.median(added[-6:]) < 1.05 * statistics.median(added[:6])
    assert grown[-1].history_bytes < grown[-1].prompts_bytes / 2
