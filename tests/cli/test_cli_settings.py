"""A variable that a worker cannot use is told before anything is told or started."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.cli.main import main
from tests.cli.command_line import CommandLine, script

BAD = [
    "HOLDFAST_KEPT_BYTES",
    "HOLDFAST_OPEN_JOBS",
    "HOLDFAST_SIGNING_KEY",
    "HOLDFAST_REDACTION_KEY",
]


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize(
    "command", [["run", "jobs.yaml"], ["worker"], ["run", "jobs.yaml", "--dry-run"]]
)
def test_nothing_is_started(
    name: str,
    command: list[str],
    clean_environment: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line that names it, exit code 2, and no server."""
    (tmp_path / "s.py").write_text("def respond(messages):\n    return {'code': 'finish(1)'}\n")
    (tmp_path / "jobs.yaml").write_text(
        "batch: b\njobs: [{id: a, goal: g, workspace: ., model: scripted/s.py}]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(name, "x")
    assert main(command) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith(f"error: {name}")
    assert not (tmp_path / "home" / "server" / "server.json").exists()


@pytest.mark.server
@pytest.mark.slow
def test_no_job_is_taken_back(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay whose worker would not work ends no run, and a fork begins none."""
    cli.write("a.json", script("n = 1", "finish(n)"))
    assert cli("run", cli.jobs("id: a, model: scripted/a.json", batch="settings")).code == 0
    monkeypatch.setenv("HOLDFAST_KEPT_BYTES", "x")
    for command in (["replay", "settings/a", "--from", "2"], ["fork", "settings/a@2", "--as", "b"]):
        done = cli(*command)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith("error: HOLDFAST_KEPT_BYTES: expected a number of bytes")
    assert len(cli.archive("settings", "a").runs()) == 1
    assert cli.archive("settings", "b").runs() == []
