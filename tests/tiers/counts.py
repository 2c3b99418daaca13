"""The quick tier stays quick: by what it starts, whatever the machine.

Each process of pytest-xdist counts the tests of its own rooms; the one that gives them out adds up,
and fails the session beyond the bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from tests.tiers.tiers import CHOSEN, MOST_SERVERS, MOST_SMOKE

SHARED = {"temporal"}
"""Fixtures that start one server for all tests of a process."""

OF_A_ROOM = {"hurried", "kept_home", "s3_server"}
"""Fixtures that start one server for all tests of a room."""

KINDS = ("server", "kill", "s3")
"""What the tests from end to end show: each kind at least once."""

SMOKE, SERVERS = "smoke", "servers"

FOUND = pytest.StashKey[list[Mapping[str, int]]]()
"""In the configuration of the process that gives out the tests: the counts of the others."""


def servers(items: Iterable[pytest.Item]) -> int:
    """The servers that the tests of a process start: one a shared fixture, one a room and fixture
    of its own, and one a test that has its own.
    """
    shared, own = set(), 0
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        used = {(None, name) for name in SHARED & fixtures}
        used |= {(item.path.parent, name) for name in OF_A_ROOM & fixtures}
        shared |= used
        own += not used and any(item.get_closest_marker(name) for name in ("server", "s3"))
    return len(shared) + own


def counts(items: Iterable[pytest.Item]) -> dict[str, int]:
    """What the tests of the quick tier are and start."""
    items = list(items)
    smoke = [item for item in items if item.get_closest_marker(SMOKE)]
    kinds = {kind: sum(bool(item.get_closest_marker(kind)) for item in smoke) for kind in KINDS}
    return {SMOKE: len(smoke), SERVERS: servers(items), **kinds}


def faults(found: Iterable[Mapping[str, int]]) -> list[str]:
    """What is wrong with the counts of all processes together."""
    each = list(found)
    total = {name: sum(one.get(name, 0) for one in each) for name in (SMOKE, SERVERS, *KINDS)}
    bounds = {SMOKE: MOST_SMOKE, SERVERS: MOST_SERVERS}
    return [
        *(
            f"the quick tier has {total[name]} {name}, and may have {most} (tests/tiers)"
            for name, most in bounds.items()
            if total[name] > most
        ),
        *(f"no {kind} test of the quick tier is smoke" for kind in KINDS if not total[kind]),
    ]


def tell(config: pytest.Config) -> None:
    """Leave this process's counts where they are added up."""
    if (output := getattr(config, "workeroutput", None)) is not None:
        output["counts"] = counts(config.stash[CHOSEN])
    elif (items := config.stash.get(CHOSEN, None)) is not None:
        config.stash.setdefault(FOUND, []).append(counts(items))


def judge(session: pytest.Session) -> None:
    """Fail the session if the counts of all its processes are beyond the bounds."""
    found = session.config.stash.get(FOUND, [])
    if session.exitstatus == pytest.ExitCode.OK and (wrong := faults(found)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        for line in wrong:
            reporter.write_line(f"\n{line}", red=True)
