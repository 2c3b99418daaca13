"""A disk without room, as the embedded server's launcher tells of it."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from runtime.base.home import Home
from runtime.server.embedded import _not_started
from runtime.server.process import Launched, ServerInfo


@pytest.mark.parametrize(
    "said", ["holdfast-server: 1: printf: printf: I/O error", "write: No space left on device"]
)
def test_a_launcher_that_cannot_write_tells_of_the_disk(said: str, tmp_path: Path) -> None:
    """The shell fails before the server does, and in words of its own."""
    home = Home(tmp_path)
    home.server.mkdir(parents=True, exist_ok=True)
    home.log.parent.mkdir(parents=True, exist_ok=True)
    home.log.write_text(said)
    process = subprocess.Popen(["/bin/false"])
    process.wait()
    info = ServerInfo.model_validate_json(
        '{"pid": 0, "port": 1, "ui_port": null, "binary": "b", "started_at": "2026-01-01T00:00:00Z"}'
    )
    assert "the disk is full" in str(asyncio.run(_not_started(home, Launched(process, info, 0))))
