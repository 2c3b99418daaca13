"""Ctrl-C and SIGTERM during ``holdfast run``."""

import json
import os
import signal
import subprocess

import pytest

from tests.cli.command_line import CommandLine, counting, script, wait_for

pytestmark = pytest.mark.server


def _started(cli: CommandLine, batch: str, *options: str) -> "subprocess.Popen[str]":
    """A run of three jobs, two of them slow, that has come to some turns."""
    cli.write("fast.yaml", script("finish('done')"))
    cli.write("slow.py", counting(6, 0.4))
    file = cli.jobs(
        "id: fast, model: scripted/fast.yaml",
        "id: slow, model: scripted/slow.py",
        "id: waits, model: scripted/slow.py",
        batch=batch,
        head="concurrency: 1",
    )
    process = cli.start("run", file, *options)
    wait_for(lambda: cli.turns(batch, "slow") >= 2, "two turns of slow", process)
    return process


def test_the_first_drains_and_the_same_command_resumes(cli: CommandLine) -> None:
    """Exit 130, how to go on is said; the command so named resumes, and no turn is taken twice."""
    process = _started(cli, "drain")
    os.killpg(process.pid, signal.SIGINT)
    done = cli.finished(process)
    assert done.code == 130
    assert done.err == "draining: calls in flight have 20 s to end, then the worker stops. Again to stop at once.\n"
    *_, totals, last = done.out.splitlines()
    assert totals.startswith("1 succeeded, 2 open; ")
    file = cli.path / "jobs.yaml"
    assert last == f"interrupted: 2 of 3 jobs are not done; to go on with them: holdfast run {file}"
    taken = cli.turns("drain", "slow")
    again = cli("run", file, "--json")
    assert again.code == 0
    jobs = json.loads(again.out.splitlines()[0])["jobs"]
    assert [job["start"] for job in jobs] == ["done", "resumed", "new"]
    assert jobs[1]["turn"] in (taken, taken + 1)
    assert [again.summary()[name]["result"] for name in ("fast", "slow", "waits")] == ["done", 6, 6]
    archive = cli.archive("drain", "slow")
    (run,) = archive.runs()
    assert [step.turn for step in archive.steps()] == [1, 2, 3, 4, 5, 6, 7]
    assert [len(archive.attempts(run, turn)) for turn in range(1, 8)] == [1] * 7


def test_sigterm_drains_with_json(cli: CommandLine) -> None:
    """SIGTERM is an interrupt; the summary is still the last line, and says what is open."""
    process = _started(cli, "term", "--json")
    process.terminate()
    done = cli.finished(process)
    last = json.loads(done.out.splitlines()[-1])
    assert (done.code, last["interrupted"], last["resume"]) == (130, True, f"holdfast run {cli.path / 'jobs.yaml'}")
    jobs = done.summary()
    assert [jobs[name]["status"] for name in ("fast", "slow", "waits")] == ["succeeded", "open", "open"]
    assert jobs["slow"]["turns"] >= 2
    assert jobs["slow"]["tokens"] > 0


def test_the_second_stops_at_once(cli: CommandLine) -> None:
    """A second signal does not wait for the call in flight; the job is resumed all the same."""
    cli.write("stuck.py", counting(1, 15))
    file = cli.jobs("id: stuck, model: scripted/stuck.py", batch="abort")
    process = cli.start("run", file)
    wait_for(
        lambda: bool(cli.archive("abort", "stuck").runs()) and cli.archive("abort", "stuck").in_flight() is not None,
        "a call in flight",
        process,
    )
    assert process.stderr is not None
    process.send_signal(signal.SIGINT)
    assert process.stderr.readline().startswith("draining: ")
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert process.stderr.readline() == f"stopped at once; to go on with the jobs: holdfast run {file}\n"
    cli.write("stuck.py", counting(1, 0))
    again = cli("run", file)
    assert again.code == 0
    assert again.out.startswith("batch abort: 1 resumed at turn 1 (")


def test_an_early_one_starts_nothing(cli: CommandLine) -> None:
    """Before the jobs are submitted, an interrupt ends the command and says that nothing was started."""
    cli.write("good.yaml", script("finish(1)"))
    file = cli.jobs("id: a, model: scripted/good.yaml", batch="early")
    process = cli.start("run", file)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("batch early: 1 new (")
    process.send_signal(signal.SIGINT)
    done = cli.finished(process)
    assert (done.code, done.err) == (130, "interrupted before anything was started\n")
    assert cli.archive("early", "a").definition() is None
