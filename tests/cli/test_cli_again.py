"""The same command again finishes what the batch still has to do, also where all of its jobs have
had an end.
"""

from __future__ import annotations

import re
import signal
import sys

import pytest

from tests.cli.command_line import (
    UNHURRIED,
    CommandLine,
    damage,
    gated,
    script,
    wait_for,
)
from tests.cli.terminal import on_a_terminal

pytestmark = pytest.mark.server

FAILS = "def respond(messages):\n    return 'no statement'\n"
TELL = """
import pathlib, sys, time
pathlib.Path("began").touch()
while not pathlib.Path("gate").exists():
    time.sleep(0.02)
pathlib.Path("told").write_text(sys.stdin.read())
"""


def test_what_was_to_be_started_anew_is_started_by_the_command_that_resumes(
    cli: CommandLine,
) -> None:
    """Interrupted, it says what goes on with the jobs; until then one of them can be cancelled,
    though no worker is there. On a terminal each is counted once.
    """
    cli.write("f.py", FAILS)
    jobs = [f"id: f{n}, model: scripted/f.py, {UNHURRIED}" for n in range(3)]
    file = cli.jobs(*jobs, batch="anew", head="concurrency: 1")
    assert cli("run", file).code == 1
    cli.write("f.py", gated(cli.path / "gate"))
    process = cli.start("run", file, "--rerun-failed")
    wait_for(lambda: len(cli.archive("anew", "f0").runs()) == 2, "a job begins anew", process)
    process.send_signal(signal.SIGINT)
    done = cli.finished(process)
    assert (done.code, f"holdfast run {file}\n" in done.out + done.err) == (130, True)
    assert cli("cancel", "anew/f2").code == 0
    cli.write("gate", "")
    code, again = on_a_terminal([sys.executable, "-m", "holdfast", "run", file], cli.path)
    assert code == 1
    assert "begin again, as was asked for before" in again or "begins again" in again
    assert "anew/f0  succeeded" in again
    assert "anew/f1  succeeded" in again
    assert "anew/f2  cancelled" in again
    # The table does not count the ends of before any more.
    assert re.search(r"(?<!, )1 cancelled, 2 succeeded of 3  ", again)
    assert [len(cli.archive("anew", f"f{n}").runs()) for n in range(3)] == [2, 2, 1]


def test_an_end_that_cannot_be_read_hides_no_other(cli: CommandLine) -> None:
    """All is told that there is, and then what is damaged, with exit code 4."""
    cli.write("a.json", script("finish([1])"))
    jobs = [f"id: {name}, model: scripted/a.json" for name in "abc"]
    file = cli.jobs(*jobs, batch="harmed")
    assert cli("run", file).code == 0
    (end,) = (cli.home / "archive/harmed/b/ends").iterdir()
    whole = end.read_bytes()
    damage(end)
    again = cli("run", file)
    end.write_bytes(whole)
    assert (again.code, "'holdfast verify' tells what is damaged" in again.err) == (4, True)
    assert [line for line in again.out.splitlines() if "[1]" in line] == [
        "harmed/a: [1]",
        "harmed/c: [1]",
    ]
    assert "3 succeeded; " in again.out
    assert f"error: harmed/b/ends/{end.name}" in again.err


def test_the_end_of_a_batch_is_told_by_the_command_that_resumes(cli: CommandLine) -> None:
    """Interrupted while it is told, it says so; with nothing else left to do it tells."""
    cli.write("a.json", script("finish(1)"))
    told = cli.write("tell.py", TELL)
    finish = f"on_finish: {{command: '{sys.executable} {told}', events: [batch]}}"
    file = cli.jobs("id: a, model: scripted/a.json", batch="told", head=finish)
    process = cli.start("run", file)
    wait_for((cli.path / "began").exists, "the end is being told", process)
    process.send_signal(signal.SIGINT)
    assert cli.finished(process).code == 130
    assert not (cli.path / "told").exists()
    cli.write("gate", "")
    again = cli("run", file)
    assert again.code == 0
    assert '"statuses"' in (cli.path / "told").read_text()
    (cli.path / "began").unlink()
    assert cli("run", file).code == 0
    assert not (cli.path / "began").exists()
