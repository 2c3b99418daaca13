"""The live table on terminals of several sizes, as rich writes it."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from runtime.base.standings import waiting_for
from runtime.base.values import JobKey, Usage
from runtime.cli.board import Board
from runtime.cli.reporters import doing_text
from runtime.client.moves import Turn
from runtime.client.standing import Running, Trouble
from runtime.job.phases import Phase
from runtime.job.stops import JobStatus
from workflows.messages import JobOutcome, JobProgress


def _turn(name: str, turn: int = 41, statement: str = "", trouble: Trouble | None = None) -> Turn:
    usage = Usage(prompt=1_234_567 - 100, completion=100)
    progress = JobProgress(
        status=JobStatus.RUNNING,
        turn=turn,
        phase=Phase.MODEL,
        usage=usage,
        cost_usd=1.5,
        statement=statement,
    )
    return Turn(JobKey(batch="nightly", job=name), progress, trouble)


def _ended(name: str, status: JobStatus) -> JobOutcome:
    return JobOutcome(
        key=JobKey(batch="nightly", job=name), status=status, cost_usd=0.25, usage=Usage(prompt=10)
    )


def _drawn(board: Board, width: int, height: int) -> list[str]:
    """The lines that reach a terminal of that size."""
    console = Console(
        file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None
    )
    console.print(board.drawn(*console.size, now=board.began + 3_725.0))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def _many() -> Board:
    board = Board(began=100.0)
    board.planned(100, [_ended("old", JobStatus.SUCCEEDED), _ended("bad", JobStatus.BUDGET)])
    for number in range(60):
        board.turn(
            _turn(
                f"licences-of-the-{number:02}-files",
                statement="foo = view('src/a.py')\nfoo.SetLod(1)",
            )
        )
    return board


@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 10), (200, 50)])
def test_every_size_shows_turn_tokens_and_cost(width: int, height: int) -> None:
    """The counts are first, each row has its turn, tokens and cost, and no line or row goes beyond
    the terminal.
    """
    lines = _drawn(_many(), width, height)
    assert all(len(line) <= width for line in lines)
    assert len(lines) == height - 1
    head = [lines[0]] if width > 80 else lines[:2]
    assert head[0].startswith("38 queued, 60 running, 1 succeeded, 1 budget of 100")
    assert head[-1].endswith("1:02:05  $90.5000  74,074,040 tokens")
    rows = lines[len(head) + 1 : -1]
    assert all("   41    1,234,567    $1.5000  " in row for row in rows)
    assert lines[-1] == f"… and {60 - len(rows)} more"


def test_jobs_that_begin_again_are_counted_once() -> None:
    """``run`` hears from the batch that some of those that failed wait to begin anew, as after one
    with ``--rerun-failed`` that was interrupted.
    """
    board = Board(began=100.0)
    failed = [_ended(name, JobStatus.FAILED) for name in "abc"]
    board.planned(4, failed)
    board.planned(4, failed[2:])
    board.turn(_turn("a"))
    assert _drawn(board, 100, 24)[0] == (
        "2 queued, 1 running, 1 failed of 4  1:02:05  $1.7500  1,234,577 tokens"
    )


def test_a_narrow_line_word_by_word() -> None:
    """Of 60 columns the name has a quarter, its middle left out, and what is left is the
    statement's.
    """
    assert _drawn(_many(), 60, 10)[2:4] == [
        "job               turn       tokens       cost  statement",
        "licence…0-files     41    1,234,567    $1.5000  foo = view(…",
    ]


def test_a_line_of_80_columns() -> None:
    """At 80 columns there is room for what a job does, too."""
    board = Board(began=100.0)
    board.planned(1, [])
    board.turn(_turn("errors", 3, "x = 1", Trouble("ConnectionFailed: no", 2, 4.0)))
    assert _drawn(board, 80, 24) == [
        "1 running of 1  1:02:05  $1.5000  1,234,567 tokens",
        "job      turn       tokens       cost  now         statement",
        "errors      3    1,234,567    $1.5000  model       attempt 2 in 4 s, after Conn…",
    ]


def test_of_what_goes_on_the_most_important_is_told() -> None:
    """Trouble before a call that waits, that before a command, that before the statement."""
    quiet, running = _turn("a"), Running("make", "12 passed")
    runs = replace(quiet, running=running)
    awaits = replace(runs, awaits="gpu")
    failed = replace(awaits, trouble=Trouble("ConnectionFailed: no", 2, 4.0))
    held = replace(failed, trouble=Trouble("the reply waits", 2, 0.0, held=True))
    assert [doing_text(turn, "x = 1") for turn in (quiet, runs, awaits, failed, held)] == [
        "x = 1",
        "runs: make | 12 passed",
        waiting_for("gpu"),
        "attempt 2 in 4 s, after ConnectionFailed: no",
        "the reply waits",
    ]


def test_before_a_job_moves_it_says_what_it_waits_for() -> None:
    """What start-up waits for stands there until a job has moved; the time goes on."""
    board = Board(began=100.0)
    board.waiting = "starting a worker"
    assert _drawn(board, 80, 24) == ["1:02:05", "starting a worker …"]
    board.planned(2, [])
    assert _drawn(board, 80, 24)[-1] == "starting a worker …"
    board.turn(_turn("a"))
    assert "starting a worker" not in "".join(_drawn(board, 80, 24))


def test_what_ended_is_counted_and_paid_for() -> None:
    """A job that ended leaves the rows; what it cost stays in the sum."""
    board = Board(began=100.0)
    board.planned(2, [])
    board.turn(_turn("a"))
    board.ended(_ended("a", JobStatus.FAILED))
    assert _drawn(board, 80, 24) == ["1 queued, 1 failed of 2  1:02:05  $0.2500  10 tokens"]


def test_the_counts_are_those_of_ls() -> None:
    """By the same words: what waits for its place has not begun, and a budget is no failure."""
    board = Board(began=100.0)
    board.planned(6, [_ended("spent", JobStatus.BUDGET), _ended("no", JobStatus.CANCELLED)])
    for name, phase, paused in (
        ("a", "asleep", True),
        ("b", "asleep", False),
        ("c", "model", True),
    ):
        seen = _turn(name, 3, "wait(5)")
        told = {"phase": Phase(phase), "paused": paused}
        board.turn(replace(seen, progress=seen.progress.model_copy(update=told)))
    head, _, *rows = _drawn(board, 120, 24)
    counts = "1 queued, 1 running, 1 paused, 1 waiting, 1 budget, 1 cancelled of 6"
    assert head.startswith(counts)
    assert [row.split()[4] for row in rows] == ["paused", "asleep", "model"]
