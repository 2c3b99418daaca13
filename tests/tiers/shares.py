"""The quick tier's rooms, shared out among pytest-xdist's processes before anything is collected: a
process imports, and rewrites the assertions of, its own rooms' tests alone.

``--dist loadfile``, as the other tiers have it, has each process import all tests and all that they
import.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from xdist.scheduler.each import EachScheduling
from xdist.workermanage import WorkerController

TESTS = Path(__file__).parent.parent

TOGETHER = ("cli", "git", "model", "replay", "workflow")
"""Rooms that import litellm, which takes seconds: one process does it for all."""

WEIGHTS = {
    "archive": 31,
    "cli": 29,
    "model": 21,
    "interpreter": 15,
    "job": 15,
    "spec": 15,
    "readme": 11,
    "git": 6,
    "workflow": 6,
    "workspace": 5,
    "releases": 4,
    "sandbox": 4,
    "door": 3,
    "infra": 3,
    "checkouts": 2,
    "context": 2,
    "histories": 2,
    "history": 2,
    "servers": 2,
}
"""Seconds of a room's tests in the quick tier, in three processes on two cores, as far as they say
how to share rooms out; one that is not named has ``LIGHT``.

Nothing but the time depends on them.
"""

LIGHT = 1

SESSION = pytest.StashKey[pytest.Session]()
"""In the configuration of the process that gives out the tests: its session."""


def rooms() -> list[str]:
    """The rooms of tests, by name."""
    return sorted({path.parent.name for path in TESTS.glob("*/test_*.py")})


def shares(
    names: Iterable[str], processes: int, weights: Mapping[str, int] = WEIGHTS
) -> list[frozenset[str]]:
    """Each room in the share of one process: the heaviest first, each to the lightest share."""
    left = set(names)
    units = [left & set(TOGETHER), *({name} for name in left - set(TOGETHER))]
    load = {unit: sum(weights.get(name, LIGHT) for name in unit) for unit in map(frozenset, units)}
    made = [frozenset[str]() for _ in range(processes)]
    carried = [0] * processes
    for unit in sorted(load, key=lambda unit: (-load[unit], sorted(unit))):
        least = carried.index(min(carried))
        made[least] |= unit
        carried[least] += load[unit]
    return made


def share_of(node: WorkerController) -> list[str]:
    """The rooms of another process; one that replaces a crashed one has the same."""
    specs = node.nodemanager.specs
    place = next(place for place, spec in enumerate(specs) if spec is node.gateway.spec)
    return sorted(shares(rooms(), len(specs))[place])


def is_anothers(path: Path, mine: Sequence[str]) -> bool:
    """Whether a path is a room that is not of this process's share."""
    return path.parent == TESTS and path.is_dir() and path.name not in mine


class EachItsRooms(EachScheduling):
    """Lets each process run all that it collected."""

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """See ``EachScheduling``; the tests of all processes are those of the session."""
        super().add_node_collection(node, collection)
        found = sum(map(len, self.node2collection.values()))
        self.config.stash[SESSION].testscollected = found
