"""What a turn adds to the workflow's history is what is new in it, whatever the length of the
context (docs/design.md section 3).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.testing import WorkflowEnvironment

from benchmarks.blocks import block_of
from benchmarks.durability import BLOCK
from benchmarks.history_size import CONTEXT_TOKENS, MOST_BYTES, TURNS, measure

FIGURES = Path(__file__).parent.parent.parent / "docs" / "benchmarks.md"

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]


async def test_history_is_flat_and_small(temporal: WorkflowEnvironment, tmp_path: Path) -> None:
    """200 turns of a 60,000-token context: one activity and two writes a turn, under 2.4 kB beyond
    the new text, and flat.
    """
    size = await measure(temporal.client, tmp_path)
    assert size.turns == TURNS
    assert size.prompt_tokens > 0.9 * CONTEXT_TOKENS
    assert set(size.activities) == {1}
    assert set(size.writes) == {2}
    assert size.median < MOST_BYTES
    assert abs(size.slope) < 1.0
    assert told(FIGURES.read_text()) == pytest.approx(
        [size.turns, size.prompt_tokens, 1, 2, size.median], rel=0.03
    )


def told(document: str) -> list[int]:
    """The first figures of the history table."""
    row = block_of(document, BLOCK).splitlines()[-1]
    return [int(cell.replace(",", "")) for cell in row.strip("| ").split(" | ")[:5]]
