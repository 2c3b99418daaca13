"""The quick tier stays quick: by what it starts, whatever the machine."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.tiers.tiers import (
    CHOSEN,
    LEFT_TO_CI,
    MOST_SERVERS,
    MOST_SMOKE,
    NEEDED_BY_FIXTURE,
    Tier,
    chosen,
)

SHARED = {"temporal", "kept_home", "s3_server"}
"""Fixtures that start one server for all tests of a room."""


def servers(items: Iterable[pytest.Item]) -> int:
    """The servers that the tests start: one a room and shared fixture, and one a test that has its
    own.
    """
    shared, own = set(), 0
    for item in items:
        rooms = {
            (item.path.parent, name)
            for name in SHARED.intersection(getattr(item, "fixturenames", ()))
        }
        shared |= rooms
        own += not rooms and any(item.get_closest_marker(name) for name in ("server", "s3"))
    return len(shared) + own


def test_the_quick_tier_starts_few_servers(request: pytest.FixtureRequest) -> None:
    """It has some twenty tests from end to end, of every kind, and as many servers as are
    allowed.
    """
    if request.config.option.tier != Tier.QUICK:
        pytest.skip("of the quick tier alone")
    items = request.config.stash[CHOSEN]
    smoke = [item for item in items if item.get_closest_marker("smoke")]
    assert len(smoke) <= MOST_SMOKE
    assert servers(items) <= MOST_SERVERS
    assert {kind for kind in ("server", "kill", "s3") if any(item.get_closest_marker(kind) for item in smoke)} == {
        "server", "kill", "s3",
    }  # fmt: skip


@pytest.mark.parametrize("marker", sorted(LEFT_TO_CI - {"exhaustive"}))
def test_what_is_long_runs_when_it_is_named_or_all_is_asked_for(marker: str) -> None:
    """A bare command leaves it out, unless it is smoke too."""
    assert [chosen({marker}, tier) for tier in Tier] == [False, True, True]
    assert [chosen({marker, "smoke"}, tier) for tier in Tier] == [True, True, True]


def test_exhaustive_tests_run_by_their_marker_alone() -> None:
    """Neither a path nor ``--all`` is enough."""
    assert [chosen({"server", "exhaustive"}, tier) for tier in Tier] == [False, False, False]
    assert chosen({"server", "exhaustive"}, Tier.NAMED, "exhaustive")


def test_pure_tests_run_in_every_tier() -> None:
    """A test without markers, or with others, is of all."""
    assert [chosen({"parametrize"}, tier) for tier in Tier] == [True, True, True]


def test_fixtures_name_markers_that_are_left_to_ci() -> None:
    """No fixture that starts a server leaves its tests in the quick tier."""
    assert set(NEEDED_BY_FIXTURE.values()) <= LEFT_TO_CI
