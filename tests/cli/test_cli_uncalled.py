"""A job whose newest run ended before its first call, as a replay without a budget left."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from runtime.archive.forms import NewEnd
from runtime.archive.job import JobArchive
from runtime.archive.stores import open_store
from runtime.cli.main import main

sys.path.insert(0, str(Path(__file__).parents[1] / "archive"))
from archive_jobs import Written, chat, write_run


@pytest.fixture
def store(tmp_path: Path, clean_environment: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the job is."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    place = str(tmp_path / "archive")
    written = Written(JobArchive(open_store(place), "nightly", "job"))
    written.archive.write_definition({"goal": "g"})
    last = write_run(written, "first", range(1, 4), None, chat(random.Random(2), 20))
    ends = (
        NewEnd(run="first", turn=3, parent=last, status="succeeded"),
        NewEnd(
            run="second",
            turn=2,
            parent=written.refs["first", 2],
            status="budget",
            reason="2 of 2 turns are used up",
            ended_at="2030-01-01T00:00:00Z",
        ),
    )
    for end in ends:
        written.archive.write_end(end)
    return place


def test_log_says_that_the_newest_run_is_another(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it shows is the one before; an earlier one that is named is what was asked for."""
    assert main(["log", "job", "--store", store]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("nightly/job  run first\n")
    assert told.err == (
        "the newest run of nightly/job, second, ended before its first call"
        " (budget: 2 of 2 turns are used up); this is the run before it\n"
    )
    assert main(["log", "job", "--run", "first", "--store", store]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("command", ["log", "show", "export", "divergences"])
def test_a_run_without_turns_is_told_from_one_that_never_was(
    command: str, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever gives the id that 'replay' printed reads what came of it."""
    assert main([command, "job", "--run", "second", "--store", store]) == 2
    assert "second of nightly/job ended before its first call" in capsys.readouterr().err
    for none in ("third", "", ".."):
        assert main([command, "job", "--run", none, "--store", store]) == 2
        assert f"has no run {none!r} in the archive" in capsys.readouterr().err
