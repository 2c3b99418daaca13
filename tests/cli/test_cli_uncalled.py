"""A job whose newest run ended before its first call, as a replay without a budget left."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

from runtime.archive.approvals import QUESTIONS
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


@pytest.mark.parametrize("command", ["log", "export", "divergences"])
def test_what_shows_the_run_before_the_newest_says_so(
    command: str, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An earlier one that is named is what was asked for."""
    assert main([command, "job", "--store", store]) == 0
    told = capsys.readouterr()
    assert "second" not in told.out
    assert told.err == (
        "the newest run of nightly/job, second, ended before its first call"
        " (budget: 2 of 2 turns are used up); this is the run before it\n"
    )
    assert main([command, "job", "--run", "first", "--store", store]) == 0
    assert capsys.readouterr().err == ""


def test_the_graph_has_runs_without_calls(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each stands under the run that it went back into, before those that began later."""
    written = JobArchive(open_store(store), "nightly", "job")
    end = NewEnd(
        run="zeroth", turn=0, parent=None, status="cancelled", ended_at="2020-01-01T00:00:00Z"
    )
    written.write_end(end)
    assert main(["log", "job", "--graph", "--store", store]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "nightly/job",
        "zeroth  no calls  cancelled",
        "first  turns 1 to 3  succeeded",
        "└─ second  no calls  reset by Temporal's own means from statement 3  budget: 2 of 2 turns"
        " are used up",
    ]
    assert main(["log", "job", "--graph", "--store", store, "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [(one["first"], one["last"]) for one in runs] == [(1, 0), (1, 3), (3, 2)]


def test_a_run_that_went_on_in_one_without_calls_is_not_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job may be cancelled right after it went on in another run."""
    written = Written(JobArchive(open_store(str(tmp_path)), "nightly", "job"))
    last = write_run(written, "first", range(1, 4), None, chat(random.Random(2), 20))
    end = NewEnd(
        run="second", turn=3, parent=last, status="cancelled", ended_at="2030-01-01T00:00:00Z"
    )
    written.archive.write_end(end)
    assert main(["log", "job", "--graph", "--store", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "first  turns 1 to 3  goes on as run second",
        "└─ second  no calls  continues run first  cancelled",
    ]


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


@pytest.mark.parametrize(("ended_at", "waits"), [("2030", 0), ("2020", 1)])
def test_what_a_run_before_it_asked_waits_for_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ended_at: str, waits: int
) -> None:
    """A job that waited, was taken back, and was cancelled before it asked anew; where that run
    ended before the one that asks, the question is open.
    """
    written = Written(JobArchive(open_store(str(tmp_path)), "nightly", "job"))
    last = write_run(written, "first", range(1, 4), None, chat(random.Random(2), 20))
    asked = {"id": "q", "tool": "pay", "args": [3], "kwargs": {}, "asked_at": "2026-01-01"}
    written.archive.write_effect("first", 3, QUESTIONS, {"question": asked})
    end = NewEnd(
        run="second",
        turn=2,
        parent=last,
        status="cancelled",
        ended_at=f"{ended_at}-01-01T00:00:00Z",
    )
    written.archive.write_end(end)
    assert main(["approvals", "--json", "--store", str(tmp_path)]) == 0
    assert len(json.loads(capsys.readouterr().out)) == waits


def test_errors_names_a_command_that_shows_something(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also of a job that ended before a turn's call, as its budget had no room for it."""
    store = open_store(str(tmp_path))
    short = "the job's budget holds no other call; turn {}: a prompt of 9 tokens would be more"
    for job, called in (("first", 0), ("third", 2)):
        written = Written(JobArchive(store, "nightly", job))
        turns = range(1, called + 1)
        last = (
            write_run(written, "run", turns, None, chat(random.Random(2), 20)) if called else None
        )
        written.archive.write_end(
            NewEnd(
                run="run",
                turn=called + 1,
                parent=last,
                status="budget",
                reason=short.format(called + 1),
                ended_at="2030-01-01T00:00:00Z",
            )
        )
    for job, command in (
        ("first", ["log", "nightly/first"]),
        ("third", ["show", "nightly/third@2"]),
    ):
        assert main(["errors", f"nightly/{job}", "--store", str(tmp_path)]) == 0
        told = f"  holdfast {' '.join(command)} --store {tmp_path}"
        assert told in capsys.readouterr().out.splitlines()
        assert main([*command, "--store", str(tmp_path)]) == 0
        capsys.readouterr()
