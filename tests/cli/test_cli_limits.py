"""Whoever works on a batch works on the queues by which its jobs' limited calls go."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.base.spec.models import Limit
from runtime.cli.limits import _row, _say_all
from runtime.cli.main import main
from runtime.client.limits import Limited
from runtime.server.rates import Account
from tests.cli.command_line import (
    DEADLINE,
    ROOT,
    UNHURRIED,
    CommandLine,
    gated,
    script,
    wait_for,
)

LIMITS = "limits: {models: {'scripted/*': {concurrent: 2}}}"
JOB = "id: a, model: scripted/a.json"

PROGRAM = """
import os, sys
import holdfast
ended = holdfast.run(sys.argv[1]).succeeded
os._exit(0 if ended else 1)
"""

TELL = """
import pathlib, sys
try:
    pathlib.Path("tried").touch(exist_ok=False)
except FileExistsError:
    pathlib.Path("told").write_text(sys.stdin.read())
else:
    sys.exit(1)
"""


def test_a_run_from_python_makes_limited_calls_and_tells_of_its_end(cli: CommandLine) -> None:
    """The job ends, and the batch's end is told, at the second try, before ``holdfast.run``
    returns: this program ends at once.
    """
    cli.write("a.json", script("finish(1)"))
    told = cli.write("tell.py", TELL)
    finish = f"on_finish: {{command: '{sys.executable} {told}', events: [batch]}}"
    file = cli.jobs(JOB, batch="limited-python", head=f"{LIMITS}\n{finish}")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file)],
        cwd=cli.path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )
    assert done.returncode == 0, done.stderr
    assert '"statuses"' in (cli.path / "told").read_text()


def test_a_replay_after_the_batch_has_ended_makes_limited_calls(cli: CommandLine) -> None:
    """Whoever works on it: the command that replays, or a worker of all batches. A job goes by the
    queues with which it began.
    """
    cli.write("a.json", script("finish(1)"))
    file = cli.jobs(JOB, batch="limited-replay", head=LIMITS)
    assert cli.finished(cli.start("run", file)).code == 0
    replay = ("replay", "limited-replay/a", "--from", "1")
    done = cli.finished(cli.start(*replay))
    assert done.code == 0, done.err
    assert cli(*replay, "--detach").code == 0
    runs = cli.archive("limited-replay", "a")
    worker = cli.start("worker", "--processes", "1")
    wait_for(
        lambda: len(runs.runs()) == 3 and runs.end(runs.runs()[-1]) is not None, "it ends", worker
    )


def test_a_replay_makes_limited_calls_while_its_batch_runs_anew(cli: CommandLine) -> None:
    """With other limits, and worked on by processes of their own: the replayed job goes by the
    queues with which it began, and ends before the batch does.
    """
    cli.write("a.json", script("finish(1)"))
    cli.write("b.py", gated(cli.path / "go"))
    first = cli.jobs(JOB, batch="limited-anew", head=LIMITS)
    assert cli.finished(cli.start("run", first)).code == 0
    assert cli("replay", "limited-anew/a", "--from", "1", "--detach").code == 0
    job = f"id: b, model: scripted/b.py, {UNHURRIED}"
    other = "limits: {models: {'scripted/*b.py': {concurrent: 1}}}"
    run = cli.start("run", cli.jobs(job, batch="limited-anew", head=other), "--workers", "2")
    runs = cli.archive("limited-anew", "a")
    wait_for(
        lambda: len(runs.runs()) == 2 and runs.end(runs.runs()[-1]) is not None, "it ends", run
    )
    cli.write("go", "")
    done = cli.finished(run)
    assert done.code == 0, done.err


@pytest.mark.parametrize("now", ["", "limits: {models: {'scripted/*a.py': {concurrent: 1}}}"])
def test_limits_that_were_changed_leave_no_open_job_behind(cli: CommandLine, now: str) -> None:
    """An open job goes by the queues with which it began, and is worked on by a ``run`` whose file
    names others, or none.
    """
    cli.write("a.py", gated(cli.path / "go"))
    job, batch = f"id: a, model: scripted/a.py, {UNHURRIED}", f"limited-{len(now)}"
    first = cli.start("run", cli.jobs(job, batch=batch, head=LIMITS))
    wait_for(lambda: cli.turns(batch, "a") > 0, "the job has begun", first)
    first.send_signal(signal.SIGINT)
    cli.finished(first)
    cli.write("go", "")
    done = cli.finished(cli.start("run", cli.jobs(job, batch=batch, head=now)))
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("limit", "rate", "told"),
    [
        (
            Limit(requests_per_minute=0.5, tokens_per_minute=2_000_000),
            1_234_567.25 / 60,
            "0.5 calls a minute, 2,000,000 tokens a minute; now 1,234,567.25 a minute",
        ),
        (
            Limit(tokens_per_minute=12_345_678, concurrent=2),
            None,
            "12,345,678 tokens a minute, 2 at a time; now not bounded",
        ),
    ],
)
def test_a_limit_is_told_in_all_its_digits(
    capsys: pytest.CaptureFixture[str], limit: Limit, rate: float | None, told: str
) -> None:
    """However many: accounts have millions of tokens a minute."""
    _say_all([_row(Limited("model:openai/*@archive", Account(limit=limit), rate))])
    assert capsys.readouterr().out == f"openai/*  {told}\n"


@pytest.mark.parametrize(
    ("option", "number", "told"),
    [
        ("--requests-per-minute", "inf", "expected a finite number, got inf"),
        ("--requests-per-minute", "1e400", "expected a finite number, got inf"),
        ("--requests-per-minute", "0.009", "expected a number of at least 0.01, got 0.009"),
        ("--tokens-per-minute", "0", "expected a number of at least 1, got 0"),
        ("--concurrent", "257", "expected a number of at most 256, got 257"),
    ],
)
def test_what_no_jobs_file_may_have_is_no_limit(
    tmp_path: Path,
    clean_environment: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: str,
    number: str,
    told: str,
) -> None:
    """One rule for both, told in one line."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    assert main(["limits", "scripted/*", option, number]) == 2
    assert capsys.readouterr().err == f"error: {option}: {told}\n"
