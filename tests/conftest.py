"""Settings of all tests, and their order."""

import pytest
from hypothesis import settings

# Tests assert behaviour and never seconds.
settings.register_profile("holdfast", deadline=None)
settings.load_profile("holdfast")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Kill tests come first: they take longest, and mostly wait, while pytest-xdist's other processes have the rest."""
    items.sort(key=lambda item: item.get_closest_marker("kill") is None)
