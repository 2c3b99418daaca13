"""A disk without room, as the embedded server's launcher tells of it."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from runtime.base.home import Home
from runtime.server.embedded import _not_started
from runtime.server.process import Launched, ServerInfo
from tests.small_disk import fill, small_disk


@pytest.mark.parametrize(
    "said", ["holdfast-server: 1: printf: printf: I/O error", "write: No space left on device"]
)
def test_a_launcher_that_cannot_write_tells_of_the_disk(said: str, tmp_path: Path) -> None:
    """The shell fails before the server does, and in words of its own."""
    home = Home(tmp_path)
    home.server.mkdir(parents=True, exist_ok=True)
    home.log.write_text(said)
    assert "the disk is full" in _told(home)


def test_a_full_disk_is_told_without_a_word_in_the_log(tmp_path: Path) -> None:
    """For that there was no room either."""
    with small_disk(tmp_path / "disk", "1m") as disk:
        home = _with_a_log(disk)
        assert _told(home) == (
            f"the embedded Temporal server ended with exit code 1; its log is {home.log}"
        )
        fill(disk)
        assert _told(home) == (
            f"the embedded Temporal server cannot write to {home.server}: the disk is full. Free"
            " space, then give the same command again; nothing is lost. The server's log is"
            f" {home.log}"
        )


def test_a_disk_without_inodes_is_told_as_that(tmp_path: Path) -> None:
    """A server that could make no file is short of those, however many bytes are free."""
    with small_disk(tmp_path / "disk", "1m,nr_inodes=15") as disk:
        home = _with_a_log(disk)
        assert _told(home) == (
            f"the embedded Temporal server cannot write to {home.server}: the disk is full, as it"
            " can hold no further files (inodes). Delete some, then give the same command again;"
            f" nothing is lost. The server's log is {home.log}"
        )


def _with_a_log(folder: Path) -> Home:
    """A state directory whose server wrote no word."""
    home = Home(folder)
    home.server.mkdir()
    home.log.touch()
    return home


def _told(home: Home) -> str:
    """What is said of a server that has ended as it began."""
    process = subprocess.Popen(["/bin/false"])
    process.wait()
    info = ServerInfo.model_validate_json(
        '{"pid": 0, "port": 1, "ui_port": null, "binary": "b", "started_at": "2026-01-01T00:00:00Z"}'
    )
    return str(asyncio.run(_not_started(home, Launched(process, info, 0))))
