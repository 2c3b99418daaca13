"""What makes the kill tests' processes start quickly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kill.failpoints import TURNS
from tests.kill.oracle import record
from tests.kill.scene import Scene


@pytest.fixture(scope="session", autouse=True)
def bytecode(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compiled modules are kept for the session, whatever the environment says: each test starts several processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        patch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("bytecode")))
        yield


@pytest.fixture(scope="session")
def undisturbed(bytecode: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The record of the fail points' job when nobody kills anything."""
    return run_undisturbed(tmp_path_factory.mktemp("undisturbed"), TURNS)


def run_undisturbed(path: Path, turns: int) -> dict[str, Any]:
    """The record of a job that nobody kills."""
    with Scene.open(path, turns) as scene:
        scene.start()
        return record(scene, scene.finish())
