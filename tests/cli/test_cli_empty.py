"""An empty text, as of a variable that is not set, in the place of a path or a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.cli.main import main


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are given in an empty directory, without a state directory yet."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["workspace", "apply", "j", "--yes", "--to", ""], "--to"),
        (["workspace", "apply", "j", "--yes", "--to="], "--to"),
        (["workspace", "export", "j", ""], "DIR"),
        (["workspace", "export", "j", "d", "--agent-trace", ""], "--agent-trace"),
        (["results", "b", "--out", ""], "--out"),
        (["run", ""], "JOBS_FILE"),
        (["worker", "--allow", "/", "--allow", ""], "--allow"),
        (["replay", "j", "--from", "1", "--edit", ""], "--edit"),
        (["codec", "--token-file", ""], "--token-file"),
    ],
)
def test_an_empty_text_is_no_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], name: str
) -> None:
    """It was the directory in which the command was given, and files were written there."""
    assert main(arguments) == 2
    assert f"Invalid value for '{name}': expected a path, got ''\n" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["compare", "j", ""], "'' names no job and no batch: name another, or leave it out"),
        (
            ["why", "j", ""],
            "expected a text to look for, got '': every part of a prompt holds that",
        ),
    ],
)
def test_an_empty_text_is_no_name(
    capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    """A job was compared with itself, and each part of a prompt was told."""
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"error: {told}\n"
