"""Tests that need a sandbox: where the machine has none, they are skipped with the words of the
product, which say what to do.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import pytest

from runtime.sandbox.choice import overlays_work, sandbox_of
from runtime.sandbox.command import SandboxUnavailable

ROOM = "tests/sandbox/"
LAYERS = ("tests/sandbox/test_layers.py", "layered")
"""What needs overlays too: a file, and a fixture."""


def skip_without_a_sandbox(items: list[pytest.Item]) -> None:
    """Skip the tests of the sandbox, and those marked ``sandbox``, where bubblewrap does not work;
    and those of layers where overlays do not.
    """
    for item in items:
        wanted = item.nodeid.startswith(ROOM) or item.get_closest_marker("sandbox") is not None
        if not wanted:
            continue
        if fault := no_sandbox():
            item.add_marker(pytest.mark.skip(reason=fault))
        elif _needs_layers(item) and not overlays():
            item.add_marker(pytest.mark.skip(reason="overlays do not work on this machine"))


def _needs_layers(item: pytest.Item) -> bool:
    file, fixture = LAYERS
    return item.nodeid.startswith(file) or fixture in getattr(item, "fixturenames", ())


@cache
def no_sandbox() -> str:
    """Why there is no sandbox here; empty if there is one."""
    try:
        sandbox_of("bwrap")
    except SandboxUnavailable as error:
        return str(error)
    return ""


@cache
def overlays() -> bool:
    """Whether overlays work where tests have their files."""
    with tempfile.TemporaryDirectory(prefix="holdfast-overlays-") as directory:
        return overlays_work(Path(directory))
