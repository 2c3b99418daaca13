"""A state directory of its own for each test, whose server is gone afterwards."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.base.home import Home, state_home
from runtime.server.process import is_alive, read_info
from tests.local.helpers import kill_at_once


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    for name in [name for name in os.environ if name.startswith("TEMPORAL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(tmp_path / "no-such-file.toml"))
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    home = state_home()
    yield home
    if is_alive(home) and read_info(home) is not None:
        kill_at_once(home)
