"""The quick tier is shared out whole, stays quick, and the tiers are what their commands say."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tiers.counts import KINDS, counts, faults
from tests.tiers.shares import TESTS, TOGETHER, WEIGHTS, is_anothers, rooms, share_of, shares
from tests.tiers.tiers import (
    LEFT_TO_CI,
    MOST_SERVERS,
    MOST_SMOKE,
    NEEDED_BY_FIXTURE,
    Tier,
    chosen,
)

WHOLE = {"smoke": MOST_SMOKE, "servers": MOST_SERVERS, **dict.fromkeys(KINDS, 1)}


@pytest.mark.parametrize("processes", [1, 2, 3, 8])
def test_each_room_is_of_one_share(processes: int) -> None:
    """However many processes there are; and those that import litellm are together."""
    made = shares(rooms(), processes)
    assert len(made) == processes
    assert sorted(name for share in made for name in share) == rooms()
    assert [set(TOGETHER) <= share for share in made].count(True) == 1


def test_shares_are_even() -> None:
    """No share is heavier than the lightest by more than its lightest room."""
    weights = {"a": 9, "b": 7, "c": 5, "d": 4, "e": 2}
    assert shares(weights, 2, weights) == [{"a", "d"}, {"b", "c", "e"}]


def test_weights_are_of_rooms() -> None:
    """A room that has gone, or has another name, is not weighed."""
    assert WEIGHTS.keys() | set(TOGETHER) <= set(rooms())


def test_a_process_that_replaces_another_has_its_rooms() -> None:
    """They are found by the place of what both were started from."""
    specs = [object(), object(), object()]

    def node(spec: object) -> Any:
        return SimpleNamespace(
            nodemanager=SimpleNamespace(specs=specs), gateway=SimpleNamespace(spec=spec)
        )

    found = [share_of(node(spec)) for spec in specs]
    assert found == [sorted(share) for share in shares(rooms(), 3)]
    assert share_of(node(specs[1])) == found[1]


def test_only_rooms_are_left_to_others() -> None:
    """What lies beside them, or in a room of one's own, is collected."""
    left = [is_anothers(path, ["tiers"]) for path in (TESTS, TESTS / "tiers", TESTS / "kill")]
    assert left == [False, False, True]
    assert not is_anothers(Path(__file__), ["kill"])
    assert not is_anothers(TESTS / "conftest.py", ["kill"])


def test_the_counts_of_all_processes_are_added_up() -> None:
    """One smoke test or server too many is told, and a kind that no smoke test shows."""
    assert faults([WHOLE]) == faults([WHOLE, dict.fromkeys(WHOLE, 0)]) == []
    assert faults([WHOLE, {"smoke": 1}]) == [
        f"the quick tier has {MOST_SMOKE + 1} smoke, and may have {MOST_SMOKE} (tests/tiers)"
    ]
    assert faults([WHOLE, {"servers": 1}]) == [
        f"the quick tier has {MOST_SERVERS + 1} servers, and may have {MOST_SERVERS} (tests/tiers)"
    ]
    assert faults([{**WHOLE, "s3": 0}]) == ["no s3 test of the quick tier is smoke"]


@pytest.mark.parametrize("marker", sorted(LEFT_TO_CI))
def test_what_is_long_runs_when_it_is_named_or_all_is_asked_for(marker: str) -> None:
    """A bare command leaves it out, unless it is smoke too."""
    assert [chosen({marker}, tier) for tier in Tier] == [False, True, True, True]
    assert [chosen({marker, "smoke"}, tier) for tier in Tier] == [True, True, True, False]


def test_exhaustive_tests_run_by_their_marker_alone() -> None:
    """Neither a path nor an option is enough."""
    assert not any(chosen({"server", "exhaustive"}, tier) for tier in Tier)
    assert chosen({"server", "exhaustive"}, Tier.NAMED, "exhaustive")


def test_pure_tests_run_in_every_tier() -> None:
    """A test without markers, or with others, is of all; a property is tried again with the rest,
    which has more examples.
    """
    assert [chosen({"parametrize"}, tier) for tier in Tier] == [True, True, True, False]
    assert [chosen({"hypothesis"}, tier) for tier in Tier] == [True, True, True, True]


def test_fixtures_name_markers_that_are_left_to_ci() -> None:
    """No fixture that starts a server leaves its tests in the quick tier."""
    assert set(NEEDED_BY_FIXTURE.values()) <= LEFT_TO_CI


def test_a_server_of_a_room_counts_once(request: pytest.FixtureRequest) -> None:
    """And that of all rooms, too; one of a test alone for each; what needs none does not count."""

    def item(room: str, *markers: str, fixtures: tuple[str, ...] = ()) -> Any:
        return SimpleNamespace(
            path=TESTS / room / "test_x.py",
            fixturenames=fixtures,
            get_closest_marker=lambda name: name in markers or None,
        )

    shared = [item("cli", "server", "smoke", fixtures=("kept_home",)) for _ in range(3)]
    rooms = ("workflow", "replay")
    shared += [item(room, "server", "smoke", fixtures=("temporal",)) for room in rooms]
    found = counts([*shared, item("kill", "kill", "server", "smoke"), item("job"), request.node])
    assert found == {"smoke": 6, "servers": 3, "server": 6, "kill": 1, "s3": 0}
