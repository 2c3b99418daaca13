"""``holdfast up``, ``status`` and ``down``."""

import asyncio
import json
import os
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from runtime.base.home import state_home
from runtime.cli.main import main
from runtime.server.embedded import server_in_use

pytestmark = pytest.mark.server


def test_up_status_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """'up' tells where the server is, 'status' tells it again, 'down' ends it; each also as
    JSON.
    """
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(tmp_path / "none.toml"))
    monkeypatch.setenv("TEMPORAL_ADDRESS", "elsewhere:7233")

    def said(*arguments: str) -> str:
        assert main(arguments) == 0
        return capsys.readouterr().out

    try:
        up = json.loads(said("up", "--json"))
        assert up["ui_url"] is None
        assert "web UI" not in said("up")
        status = json.loads(said("status", "--json"))
        server = {name: status["server"][name] for name in ("address", "ui_url", "pid")}
        assert server == {name: up[name] for name in server}
        assert (status["state"], status["pinned"], status["users"]) == ("serving", True, [])
        assert status["configured_address"] == "elsewhere:7233"
        lines = said("status").splitlines()
        assert lines[0] == "server     serving, pinned by 'holdfast up'"
        assert "web UI     off; 'holdfast up --ui' starts it" in lines
        assert (
            "note       jobs run at elsewhere:7233, as Temporal's configuration says, not here"
            in lines
        )
        assert lines[-1].startswith("build ")
    finally:
        assert said("down") == "stopped\n"
    assert json.loads(said("down", "--json")) == {"stopped": False}
    assert said("status").splitlines()[0] == "server     stopped"


def test_the_web_ui_is_there_on_demand_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """'up --ui' starts a server that has none again, on its port and with its database; one that is
    used is left alone.
    """
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    home = state_home()

    def told(*arguments: str) -> dict[str, Any]:
        assert main((*arguments, "--json")) == 0
        about: dict[str, Any] = json.loads(capsys.readouterr().out)
        return about

    async def while_used() -> tuple[int, str]:
        async with server_in_use(home):
            code = await asyncio.to_thread(main, ("up", "--ui"))
        return code, capsys.readouterr().err

    try:
        headless = told("up")
        code, words = asyncio.run(while_used())
        assert (code, told("status")["server"]["pid"]) == (1, headless["pid"])
        assert (
            f"runs without its web UI, and is used by process {os.getpid()}: give the same command"
            " when" in words
        )
        shown = told("up", "--ui")
        assert (shown["address"], shown["pid"] != headless["pid"]) == (headless["address"], True)
        with urllib.request.urlopen(f"{shown['ui_url']}/namespaces/holdfast") as page:
            assert page.status == 200
        assert told("up")["ui_url"] == told("status")["server"]["ui_url"] == shown["ui_url"]
    finally:
        assert main(("down",)) == 0
    capsys.readouterr()
    try:
        assert told("up")["ui_url"] is None
    finally:
        assert main(("down",)) == 0
