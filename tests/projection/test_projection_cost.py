"""What the policies cost over sessions: the smaller form of ``python -m benchmarks.projection``."""

from __future__ import annotations

from pathlib import Path

import pytest

from activities.prices import prices_of
from benchmarks.projection import (
    MODEL,
    SESSIONS,
    SessionCost,
    projection_time,
    quickstart,
    recorded_session,
)
from runtime.base.spec.models import ProjectionPolicy
from runtime.projection.prices import Prices, prompt_cost

TURNS = 30


def never_dearer(rows: dict[ProjectionPolicy, SessionCost]) -> None:
    """``auto`` costs no more than the cheaper of the other two."""
    best = min(rows[ProjectionPolicy.INLINE].usd, rows[ProjectionPolicy.APPEND].usd)
    assert rows[ProjectionPolicy.AUTO].usd <= best * 1.001, rows


@pytest.mark.slow
@pytest.mark.parametrize(
    "session", ["editing, often", pytest.param("tidying", marks=pytest.mark.slow)]
)
def test_auto_is_never_dearer_than_the_other_two_and_keeps_the_prefix(
    session: str, tmp_path: Path
) -> None:
    """Over recorded observations, with files that are edited and views that are collapsed."""
    assert session in SESSIONS
    rows = {}
    for policy in ProjectionPolicy:
        folder = tmp_path / policy
        folder.mkdir()
        rows[policy] = recorded_session(session, policy, folder, TURNS)
    never_dearer(rows)
    assert rows[ProjectionPolicy.AUTO].share > 0.9
    assert rows[ProjectionPolicy.APPEND].breaks == 0 < rows[ProjectionPolicy.INLINE].breaks


@pytest.mark.slow
def test_auto_is_never_dearer_in_the_quickstart() -> None:
    """Short jobs have nothing to win, and must not lose."""
    rows = {policy: {row.session: row for row in quickstart(policy)} for policy in ProjectionPolicy}
    for session in rows[ProjectionPolicy.AUTO]:
        never_dearer({policy: found[session] for policy, found in rows.items()})


@pytest.mark.slow
def test_what_a_turn_makes_anew_does_not_grow_with_the_nodes(tmp_path: Path) -> None:
    """One node of many changed: the tokens that are not the prompt's before stay the same, but for
    the bounded handle table.
    """
    (tmp_path / "few").mkdir()
    (tmp_path / "many").mkdir()
    few = projection_time(50, 10_000, tmp_path / "few")
    many = projection_time(300, 60_000, tmp_path / "many")
    assert many.new_tokens < 3_000 + few.new_tokens


def test_prices_come_from_the_table_that_litellm_ships() -> None:
    """With relations of cached tokens; a model without a known price has those of the large
    vendors.
    """
    assert prices_of(MODEL) == Prices(usd=3e-6, read=0.1, write=1.25, marks=4)
    assert prices_of(f"anthropic/{MODEL}") == prices_of(MODEL)
    assert prices_of("openai/gpt-4.1") == Prices(usd=2e-6, read=0.25, write=1.0)
    assert prices_of("openai/gpt-4") == Prices(usd=3e-5, read=1.0, write=1.0)
    assert prices_of("scripted//x.py") == Prices()
    assert prompt_cost(Prices(), stable=1000, new=100, tail=10) == pytest.approx(100 + 125 + 10)
