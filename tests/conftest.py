"""Which tests run, with how many examples, in which order, and in which process: see
``tests.tiers.tiers``. And the Temporal server that they share.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from hypothesis import settings
from xdist.remote import Producer
from xdist.workermanage import WorkerController

from runtime.sandbox.orphans import end_orphans
from tests.tiers.counts import FOUND, judge, tell
from tests.tiers.sandboxes import overlays, skip_without_a_sandbox
from tests.tiers.shares import SESSION, EachItsRooms, is_anothers, share_of
from tests.tiers.tiers import (
    CHOSEN,
    LONG,
    LONG_LIMIT_S,
    NEEDED_BY_FIXTURE,
    Tier,
    chosen,
    register_profiles,
)

if TYPE_CHECKING:
    from temporalio.testing import WorkflowEnvironment

register_profiles()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def temporal() -> AsyncIterator[WorkflowEnvironment]:
    """A real Temporal dev server: one for all tests of a process that need no other."""
    # Here: most processes of the quick tier need none of it.
    from tests.servers.temporal_server import temporal_server

    async with temporal_server() as environment:
        yield environment


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--all``, and ``--rest``: the second command of CI."""
    parser.addoption(
        "--all",
        action="store_true",
        help="run every tier but the exhaustive one, with full properties",
    )
    parser.addoption(
        "--rest",
        action="store_true",
        help="run what --all does and a bare command would not",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Say which tier it is. pytest-xdist's other processes are told.

    What a test starts has one process, however many cores there are, unless the test says more, and
    modules are compiled once, whatever the environment says: tests start many processes.
    """
    os.environ.setdefault("HOLDFAST_PROCESSES", "1")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if told := getattr(config, "workerinput", {}).get("tier"):
        config.option.tier = Tier(told)
    else:
        named = config.args_source is pytest.Config.ArgsSource.ARGS or config.option.markexpr
        config.option.tier = (
            Tier.ALL
            if config.option.all
            else Tier.REST
            if config.option.rest
            else Tier.NAMED
            if named
            else Tier.QUICK
        )
    if not config.getoption("--hypothesis-profile", None):
        full = config.option.tier in {Tier.ALL, Tier.REST}
        settings.load_profile("full" if full else "quick")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Tell another process of pytest-xdist which tier it is, and which rooms of the quick tier are
    its own.
    """
    node.workerinput["tier"] = node.config.option.tier.value
    if node.config.option.tier is Tier.QUICK:
        node.workerinput["rooms"] = share_of(node)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Keep the session for the scheduler."""
    session.config.stash[SESSION] = session


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController) -> None:
    """Keep what another process of the quick tier counted."""
    if found := getattr(node, "workeroutput", {}).get("counts"):
        node.config.stash.setdefault(FOUND, []).append(found)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """The quick tier stays quick. No process is left of sandboxes that were killed as they began: a
    worker ends those that it finds, and none may come any more.
    """
    end_orphans()
    if session.config.option.tier is Tier.QUICK:
        tell(session.config)
        if not hasattr(session.config, "workerinput"):
            judge(session)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave other processes their rooms."""
    mine = getattr(config, "workerinput", {}).get("rooms")
    return True if mine is not None and is_anothers(collection_path, mine) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by the servers that they ask for, leave out those of other tiers, and put the
    longest first.
    """
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            # As Hypothesis does, but later.
            item.add_marker("hypothesis")
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
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
        config.hook.pytest_deselected(items=left_out)
    config.stash[CHOSEN] = tuple(items)
    for item in items:
        if markers[item] & LONG and "timeout" not in markers[item]:
            item.add_marker(pytest.mark.timeout(LONG_LIMIT_S))
    # These take longest, and mostly wait, while pytest-xdist's other processes have the rest.
    items.sort(key=lambda item: (not markers[item] & LONG, not markers[item] & {"smoke"}))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> EachItsRooms | None:
    """The quick tier's rooms are shared out before they are collected."""
    return EachItsRooms(config, log) if config.option.tier is Tier.QUICK else None


@pytest.fixture(params=["found", "copied"])
def tracking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What commands change is found as the host can, then by copying and looking through all files;
    the folder of a worker's disk in which jobs' files are laid out.
    """
    if request.param == "copied":
        # Here: it imports temporalio, which not every room does.
        from activities.versions import Versions

        monkeypatch.setattr(Versions, "overlays", False)
    return "linked" if request.param == "found" and overlays() else "own"
