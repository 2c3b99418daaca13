"""The map stays readable: few arrows between rooms, none of them in a circle."""

from __future__ import annotations

import pytest
from grimp import ImportGraph

from docs_tools.house import arrows, circles, import_graph, module_circles, room_circles

MOST_ARROWS = 100
"""Beyond it, a change merges what is one thing or moves what lies in the wrong room."""


@pytest.fixture(scope="module")
def graph() -> ImportGraph:
    """What imports what."""
    return import_graph()


def test_there_are_few_arrows_between_rooms(graph: ImportGraph) -> None:
    """At most a hundred; those that stand on one import are the first to ask about."""
    found = arrows(graph)
    thin = sorted(imports[0] for imports in found.values() if len(imports) == 1)
    told = "\n".join([f"{len(found)} arrows between rooms; on one import each:", *thin])
    assert len(found) <= MOST_ARROWS, told
    # The measure sees what it should: the rooms that everybody knows of.
    assert ("workflows", "activities") in found
    assert ("runtime.job", "runtime.history") in found


def test_nothing_is_imported_in_a_circle(graph: ImportGraph) -> None:
    """Neither rooms nor modules, functions' own imports and those for types alone included."""
    assert room_circles(arrows(graph)) == []
    assert module_circles(graph) == []


def test_circles_are_found() -> None:
    """Each circle once, and nobody who only leads to one."""
    imports = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "e"}, "e": set(), "f": {"g"}}
    assert circles(imports | {"g": {"f"}}) == [["a", "b", "c"], ["f", "g"]]
