"""The tiers: which tests a command runs, and how many examples its properties try.

- ``python -m pytest`` runs the quick tier: all that is pure, and a few tests from end to end,
  marked ``smoke``.
- ``python -m pytest --all`` runs every test but the ``exhaustive`` ones, with full properties.
- ``python -m pytest --rest`` runs what ``--all`` has and the quick tier has not: the tests that it
  leaves out, and the properties, whose other examples are tried.
- ``python -m pytest -m exhaustive`` runs the ``exhaustive`` ones, and nothing else does.
- What the command line names (a path, or markers with ``-m``) runs whichever tier it is of.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

import pytest
from hypothesis import settings

LEFT_TO_CI = frozenset({"server", "kill", "s3", "slow"})
"""The markers of tests that the quick tier leaves out, unless they are ``smoke`` too."""

NEEDED_BY_FIXTURE = {
    "temporal": "server",
    "hurried": "server",
    "kept_home": "server",
    "own_cli": "server",
    "open_cli": "server",
    "s3_server": "s3",
    "outcome": "kill",
}
"""A test that asks for the fixture needs what the marker says, whether its author thought of it or
not.
"""

MOST_SMOKE = 15
"""Tests from end to end that the quick tier may have: a new one takes the place of another."""

MOST_SERVERS = 4
"""Temporal and S3 servers that the quick tier may start, each of which takes seconds of a core: the
one that tests share (``temporal``), the commands' (``kept_home``), S3, and one whose beginning is
what a test is about.
"""

LONG_LIMIT_S = 1800
"""Seconds that a test of the markers ``LONG`` may take: one that kills waits for the server to miss
the dead, and for experiments beside its own.
"""

LONG = frozenset({"kill", "exhaustive"})

CHOSEN = pytest.StashKey[tuple[pytest.Item, ...]]()
"""In a session's configuration: the tests of its tier, before ``-k`` leaves out some."""


class Tier(StrEnum):
    """What a command runs."""

    QUICK = "quick"
    NAMED = "named"
    ALL = "all"
    REST = "rest"


def chosen(markers: Collection[str], tier: Tier, markexpr: str = "") -> bool:
    """Whether a test with these markers is run; ``-m`` chooses from these by itself.

    Hypothesis marks a property as ``hypothesis``.
    """
    if "exhaustive" in markers:
        return "exhaustive" in markexpr
    quick = "smoke" in markers or LEFT_TO_CI.isdisjoint(markers)
    if tier is Tier.REST:
        return not quick or "hypothesis" in markers
    return quick or tier is not Tier.QUICK


def register_profiles() -> None:
    """``quick``, ``full`` and ``search``.

    Tests assert behaviour and never seconds, so there is no deadline.

    The first two try the same examples each time: a change lands or not by what it does, not by
    luck. ``search`` looks for others (``--hypothesis-profile search``).
    """
    settings.register_profile("quick", deadline=None, max_examples=20, derandomize=True)
    settings.register_profile("full", deadline=None, max_examples=100, derandomize=True)
    settings.register_profile("search", deadline=None, max_examples=1000)


def examples(full: int) -> int:
    """The examples that a property tries which tries ``full`` of them in the full profile."""
    return max(1, full * settings.default.max_examples // 100)
