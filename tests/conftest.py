"""Which tests run, with how many examples, in which order, and in which process: see
``tests.tiers.tiers``.
"""

from __future__ import annotations

import os
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from tests.tiers.sandboxes import skip_without_a_sandbox
from tests.tiers.tiers import (
    CHOSEN,
    KILL_LIMIT_S,
    NEEDED_BY_FIXTURE,
    Tier,
    chosen,
    register_profiles,
)

register_profiles()


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--all``: the command of CI."""
    parser.addoption(
        "--all",
        action="store_true",
        help="run every tier but the exhaustive one, with full properties",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Say which tier it is. pytest-xdist's other processes are told.

    What a test starts has one process, however many cores there are, unless the test says more.
    """
    os.environ.setdefault("HOLDFAST_PROCESSES", "1")
    if told := getattr(config, "workerinput", {}).get("tier"):
        config.option.tier = Tier(told)
    else:
        named = config.args_source is pytest.Config.ArgsSource.ARGS or config.option.markexpr
        config.option.tier = Tier.ALL if config.option.all else Tier.NAMED if named else Tier.QUICK
    if not config.getoption("--hypothesis-profile", None):
        settings.load_profile("full" if config.option.tier is Tier.ALL else "quick")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell another process of pytest-xdist."""
    node.workerinput["tier"] = node.config.option.tier.value


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by the servers that they ask for, leave out those of other tiers, and put the
    longest first.
    """
    for item in items:
        for fixture in getattr(item, "fixturenames", ()):
            if fixture in NEEDED_BY_FIXTURE:
                item.add_marker(NEEDED_BY_FIXTURE[fixture])
    skip_without_a_sandbox(items)
    markers = {item: {marker.name for marker in item.iter_markers()} for item in items}
    left_out = [
        item
        for item in items
        if not chosen(markers[item], config.option.tier, config.option.markexpr)
    ]
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)
    config.stash[CHOSEN] = tuple(items)
    for item in items:
        if "kill" in markers[item] and "timeout" not in markers[item]:
            item.add_marker(pytest.mark.timeout(KILL_LIMIT_S))
    # Kill tests take longest, and mostly wait, while pytest-xdist's other processes have the rest.
    items.sort(key=lambda item: (not markers[item] & {"kill"}, not markers[item] & {"smoke"}))


class LoadRooms(LoadFileScheduling):
    """Gives a room's tests to one process, which starts one server for them, and imports litellm
    once.
    """

    def _split_scope(self, nodeid: str) -> str:
        return PurePosixPath(super()._split_scope(nodeid)).parts[1]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadRooms | None:
    """The quick tier has too few tests of a room to share them out."""
    return LoadRooms(config, log) if config.option.tier == Tier.QUICK else None
