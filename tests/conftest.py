"""Settings of all tests, and their order."""

import pytest
from hypothesis import settings

# Tests assert behaviour and never seconds.
settings.register_profile("holdfast", deadline=None)
settings.load_profile("holdfast")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Kill tests come first: they take longest, and mostly wait, while pytest-xdist's other processes have the rest."""
    items.sort(key=lambda item: item.get_closest_marker("kill") is None)
    if "exhaustive" in config.option.markexpr:
        return
    # Left out unless the command line asks for them by their marker.
    left_out = [item for item in items if item.get_closest_marker("exhaustive")]
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)
