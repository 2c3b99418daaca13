"""A state directory of its own for each test, whose server is gone afterwards."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.base.home import Home, state_home
from runtime.server.process import is_alive, read_info


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    for name in [name for name in os.environ if name.startswith("TEMPORAL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(tmp_path / "no-such-file.toml"))
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    home = state_home()
    yield home
    info = read_info(home)
    if is_alive(home) and info is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(info.pid, signal.SIGKILL)
        end = time.monotonic() + 60
        while is_alive(home):
            assert time.monotonic() < end, "the server does not end"
            time.sleep(0.02)
