"""``holdfast up``, ``status`` and ``down``."""

import json
from pathlib import Path

import pytest

from runtime.cli.main import main

pytestmark = pytest.mark.server


def test_up_status_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """'up' tells where the server and its web UI are, 'status' tells it again, 'down' ends it; each also as JSON."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(tmp_path / "none.toml"))
    monkeypatch.setenv("TEMPORAL_ADDRESS", "elsewhere:7233")

    def said(*arguments: str) -> str:
        assert main(arguments) == 0
        return capsys.readouterr().out

    try:
        up = json.loads(said("up", "--json"))
        assert f"web UI: {up['ui_url']}/namespaces/holdfast\n" in said("up")
        status = json.loads(said("status", "--json"))
        server = {name: status["server"][name] for name in ("address", "ui_url", "pid")}
        assert server == {name: up[name] for name in server}
        assert (status["state"], status["pinned"], status["users"]) == ("serving", True, [])
        assert status["configured_address"] == "elsewhere:7233"
        lines = said("status").splitlines()
        assert lines[0] == "server     serving, pinned by 'holdfast up'"
        assert lines[-1] == "note       jobs run at elsewhere:7233, as Temporal's configuration says, not here"
    finally:
        assert said("down") == "stopped\n"
    assert json.loads(said("down", "--json")) == {"stopped": False}
    assert said("status").splitlines()[0] == "server     stopped"
