"""``log --effects``, ``show --part statement`` and ``cost`` tell what statements did."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.archive.stores import open_store
from tests.cli.command_line import CommandLine
from tests.git.jobs import RUN, hands_job

COMMAND = (
    "3.0  sh make  exit 3, 1.5 s  M gone.txt, M data.bin, M run.sh, M private, M link, M empty"
)


def test_log_tells_what_each_statement_did(cli: CommandLine) -> None:
    """Behind its turn's line: files that changed; of a command how it ended, and its time."""
    lines = [line.strip() for line in cli("log", "one", "--effects").out.splitlines()]
    assert lines[5] == COMMAND
    assert lines[2] == "1.0  edit pkg/a.py  M pkg/a.py, M new/n.txt, M caf\\xe9.txt"
    assert [line.split()[0] for line in lines[1:-1]] == [
        *("1", "1.0", "2", "3", "3.0", "4", "4.0", "5", "5.0")
    ]
    assert "effects" not in cli("log", "one", "--json").json()


def test_show_tells_what_a_statement_did(cli: CommandLine) -> None:
    """The same line, and the same row for programs."""
    assert f"--- effects ---\n{COMMAND}\n" in cli("show", "one@3", "--part", "statement").out
    shown = cli("show", "one@3", "--part", "statement", "--json").json()["statement"]
    logged = cli("log", "one", "--effects", "--json").json()["effects"]
    assert shown["effects"] == [row for row in logged if row["turn"] == 3]
    assert shown["effects"][0]["changed"][0] == {"path": "gone.txt", "status": "M"}


def test_cost_tells_the_time_of_commands(cli: CommandLine) -> None:
    """Their number and seconds, also of the last statement, which the end tells of."""
    last = hands_job(
        open_store(str(cli.home / "archive")),
        {},
        [("x", {"a": b"1"}), ("y", {"a": b"2"}), ("sh('z')", {"a": b"3"})],
        job="last",
    )
    assert len(list(last.steps(RUN))) == 3
    rows = {row["job"]: row for row in cli("cost", "hands", "--json").json()["jobs"]}
    for job in ("hands/one", "hands/last"):
        assert (rows[job]["commands"], rows[job]["command_seconds"]) == (1, 1.5)
    assert "1 command, 1.5 s" in cli("cost", "hands/last").out


def test_cost_tells_of_a_command_that_cannot_be_read(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is missing from the sum, and the object is named."""
    store = open_store(str(tmp_path / "archive"))
    hands_job(store, {}, [("x", {"a": b"1"}), ("sh('z')", {"a": b"2"})])
    monkeypatch.setenv("HOLDFAST_STORE", str(tmp_path / "archive"))
    (damaged,) = (tmp_path / "archive").rglob("0000002.effect-000000")
    damaged.write_bytes(damaged.read_bytes()[:-9])
    (row,) = cli("cost", "one", "--json").json()["jobs"]
    assert (row["commands"], row["damaged"]) == (
        0,
        [damaged.relative_to(tmp_path / "archive").as_posix()],
    )
    assert "1 object cannot be read" in cli("cost", "one").out


def test_an_effect_that_cannot_be_read_is_told(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are told all the same."""
    store = open_store(str(tmp_path / "archive"))
    hands_job(store, {}, [("x", {"a": b"1"}), ("y", {"a": b"2"})])
    monkeypatch.setenv("HOLDFAST_STORE", str(tmp_path / "archive"))
    (damaged,) = (tmp_path / "archive").rglob("0000001.effect-000000")
    damaged.write_bytes(damaged.read_bytes()[:-9])
    lines = cli("log", "one", "--effects").out.splitlines()
    assert "1.0  edit a  DAMAGED: " in lines[2]
    assert lines[4].strip() == "2.0  edit a  M a"
