"""What makes the kill tests' processes start quickly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kill import experiments
from tests.kill.failpoints import TURNS


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
    return experiments.undisturbed(tmp_path_factory.mktemp("undisturbed"), TURNS)
