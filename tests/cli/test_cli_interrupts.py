"""Ctrl-C and SIGTERM during ``holdfast run``, and as a replay begins."""

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import islice
from typing import Any, cast

import pytest
from temporalio.client import Client

from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore, open_store
from runtime.base.home import Home
from runtime.base.roles import Role
from runtime.base.workflow_ids import batch_workflow_id
from runtime.cli import following
from runtime.server.connection import Connection
from runtime.server.process import is_alive
from runtime.server.target import Target
from runtime.worker import worker
from tests.cli.command_line import (
    ROOT,
    UNHURRIED,
    CommandLine,
    counting,
    gated,
    script,
    wait_for,
)
from tests.cli.temporal_cli import history

pytestmark = pytest.mark.server


def test_the_first_drains_the_second_stops_and_the_same_command_resumes(cli: CommandLine) -> None:
    """Exit 130 each time, and how to go on is said; other batches leave the open jobs alone; no
    turn is taken twice.
    """
    cli.write("fast.yaml", script("finish('done')"))
    # More turns than it takes until it has heard of the end.
    cli.write("slow.py", counting(9_000, 0.5))
    slow = f"model: scripted/slow.py, {UNHURRIED}"
    jobs = ("id: fast, model: scripted/fast.yaml", f"id: slow, {slow}", f"id: waits, {slow}")
    file = cli.jobs(*jobs, batch="drain", head="concurrency: 1")
    resume = f"holdfast run {file}"

    process = cli.start("run", file, "--json", "--rerun-failed")
    wait_for(lambda: cli.turns("drain", "slow") >= 2, "two turns of slow", process)
    process.terminate()
    done = cli.finished(process)
    last = json.loads(done.out.splitlines()[-1])
    assert (done.code, last["interrupted"], last["resume"]) == (130, True, resume)
    assert (
        done.err
        == "draining: calls in flight have 20 s to end, then the worker stops. Again to stop at"
        " once.\n"
    )
    summary = done.summary()
    assert [summary[name]["status"] for name in ("fast", "slow", "waits")] == [
        "succeeded",
        "open",
        "open",
    ]
    assert summary["slow"]["turns"] >= 2
    assert summary["slow"]["tokens"] > 0

    taken = cli.turns("drain", "slow")
    other = cli(
        "run", cli.jobs("id: fast, model: scripted/fast.yaml", batch="other", name="other.yaml")
    )
    assert (other.code, cli.turns("drain", "slow")) == (0, taken)

    cli.write("slow.py", counting(9_000, 600))
    process = cli.start("run", file)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith(
        f"batch drain: 1 done, 1 resumed at turn {taken}, 1 new ("
    )
    wait_for(
        lambda: cli.archive("drain", "slow").in_flight() is not None, "a call in flight", process
    )
    os.killpg(process.pid, signal.SIGINT)
    assert process.stderr.readline().startswith("draining: ")
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait() == 130
    assert process.stderr.readline() == f"stopped at once; to go on with the jobs: {resume}\n"

    turns = taken + 3
    cli.write("slow.py", counting(turns, 0))
    again = cli("run", file)
    assert again.code == 0
    assert again.out.startswith(f"batch drain: 1 done, 1 resumed at turn {taken + 1}, 1 new (")
    ends = {'drain/fast: "done"', f"drain/slow: {turns}", f"drain/waits: {turns}"}
    assert ends <= set(again.out.splitlines())
    archive = cli.archive("drain", "slow")
    (run,) = archive.runs()
    all_turns = list(range(1, turns + 2))
    assert [step.turn for step in archive.steps()] == all_turns
    attempts = [len(archive.attempts(run, turn)) for turn in all_turns]
    assert attempts == [2 if turn == taken + 1 else 1 for turn in all_turns]


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["0", "2"])
def test_the_second_leaves_no_server_that_nobody_uses(cli: CommandLine, processes: str) -> None:
    """Whether the jobs are worked on in this process or in others."""
    home = Home(cli.path / "own")
    home.path.mkdir(mode=0o700)
    cli.write("slow.py", counting(6, 600))
    file = cli.jobs(f"id: a, model: scripted/slow.py, {UNHURRIED}", batch="left")
    process = cli.start("run", file, "--workers", processes, HOLDFAST_HOME=str(home.path))
    archive = JobArchive(open_store(str(home.archive)), "left", "a")
    wait_for(lambda: bool(archive.runs()) and archive.in_flight() is not None, "a call", process)
    process.terminate()
    assert process.stderr is not None
    assert process.stderr.readline().startswith("draining: ")
    process.terminate()
    done = cli.finished(process)
    assert (done.code, done.err.partition(";")[0]) == (130, "stopped at once")
    wait_for(lambda: not is_alive(home), "the server's end")


def test_a_terminal_that_is_closed_lets_calls_in_flight_end(cli: CommandLine) -> None:
    """They are paid for. What the system and the shell send, one each, is no second wish."""
    # However late it hears of the end, a call is in flight, and has time to end.
    cli.write("slow.py", counting(9_000, 5))
    file = cli.jobs(f"id: a, model: scripted/slow.py, {UNHURRIED}", batch="closed")
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    command = [sys.executable, "-m", "holdfast", "run", str(file)]
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    with subprocess.Popen(
        command, cwd=cli.path, env=environment, start_new_session=True, **streams
    ) as process:
        os.close(theirs)
        archive = cli.archive("closed", "a")

        def is_called() -> bool:
            with suppress(BlockingIOError):
                os.read(ours, 65536)
            return bool(archive.runs()) and archive.in_flight() is not None

        wait_for(is_called, "a call in flight")
        os.close(ours)
        for _ in range(2):
            process.send_signal(signal.SIGHUP)
        assert process.wait() == 130
    assert archive.in_flight() is None
    (run,) = archive.runs()
    assert {len(archive.attempts(run, step.turn)) for step in archive.steps()} == {1}


@asynccontextmanager
async def _loading_for_ever(*_: object, **__: object) -> AsyncIterator[None]:
    await asyncio.Event().wait()
    yield


def _have_no_worker() -> None:
    worker.running_worker = _loading_for_ever


def test_an_early_one_starts_nothing(cli: CommandLine) -> None:
    """Before the jobs are submitted, an interrupt ends the command and says that nothing was
    started.
    """
    cli.write("good.yaml", script("finish(1)"))
    file = cli.jobs("id: a, model: scripted/good.yaml", batch="early")
    process = cli.start("run", file, before=_have_no_worker)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("batch early: 1 new (")
    process.send_signal(signal.SIGINT)
    done = cli.finished(process)
    assert (done.code, done.err) == (130, "interrupted before anything was started\n")
    assert cli.archive("early", "a").definition() is None


@pytest.mark.slow
def test_one_while_no_worker_takes_the_jobs_ends_the_command(cli: CommandLine) -> None:
    """They wait for those that are loading, or for a role that nobody has: nobody has to interrupt
    twice, and the same command goes on.
    """
    cli.write("good.yaml", script("finish(1)"))
    file = cli.jobs("id: a, model: scripted/good.yaml", batch="roles")
    process = cli.start("run", file, "--workers", "2", HOLDFAST_ROLES="reads")
    assert process.stderr is not None
    assert process.stderr.readline() == "making the calls of role reads\n"
    batch = batch_workflow_id("roles")
    wait_for(lambda: history(cli, batch).returncode == 0, "the jobs are submitted", process)
    process.send_signal(signal.SIGINT)
    done = cli.finished(process)
    told = [line for line in done.err.splitlines() if line != "making the calls of role reads"]
    assert (done.code, [line.partition(":")[0] for line in told]) == (130, ["draining"])
    assert done.out.splitlines()[-1].startswith("interrupted: 1 of 1 jobs ")
    again = cli.start("run", file, HOLDFAST_ROLES=",".join(Role))
    assert cli.finished(again).code == 0


def test_an_interrupted_fork_goes_on_with_the_same_command(cli: CommandLine) -> None:
    """Which is what it says: no file names it, and 'run' of that of its job has nothing to do. Its
    turns are told as they come.
    """
    gate = cli.write("gate", "")
    cli.write("gated.py", gated(gate))
    file = cli.jobs(f"id: a, model: scripted/gated.py, {UNHURRIED}", batch="forked")
    assert cli("run", file).code == 0
    gate.unlink()
    fork = ("fork", "forked/a@1", "--as", "b")
    process = cli.start(*fork)
    assert process.stdout is not None
    begun, turn = islice(process.stdout, 2)
    assert begun.startswith("forked/b from statement 1 (rerun)")
    assert turn.startswith("forked/b  turn ")
    process.send_signal(signal.SIGINT)
    done = cli.finished(process)
    assert (done.code, "(this command again, 'holdfast worker')" in done.err) == (130, True)
    gate.write_text("")
    assert cli(*fork).code == 0
    assert len(cli.archive("forked", "b").runs()) == 1


def test_a_job_that_was_taken_back_is_not_done_by_its_run_before(cli: CommandLine) -> None:
    """It is paused before its first call there, so the archive has that run's end alone."""
    cli.write("good.yaml", script("x = 1", "finish(x)"))
    file = cli.jobs("id: a, model: scripted/good.yaml", batch="back")
    assert cli("run", file).code == 0
    assert cli("replay", "back/a", "--from", "2", "--detach").code == 0
    assert cli("pause", "back/a").code == 0
    process = cli.start("run", file)
    assert process.stdout is not None
    assert "1 resumed at turn 1" in process.stdout.readline()
    # Behind the lines that tell how the job comes there, if there are any.
    assert any("paused by a user" in line for line in process.stdout)
    process.send_signal(signal.SIGINT)
    done = cli.finished(process)
    *_, counted, told = done.out.splitlines()
    assert (done.code, counted.partition(";")[0]) == (130, "1 open")
    assert told.startswith("interrupted: 1 of 1 jobs ")
    assert cli("resume", "back/a").code == 0
    assert cli("run", file).code == 0


@pytest.mark.parametrize("where", ["connecting", "beginning"])
def test_one_before_a_replay_runs_ends_it_in_a_sentence(
    where: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 130, with what may have begun."""

    async def interrupted() -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

    @asynccontextmanager
    async def connect(target: Target) -> AsyncIterator[Connection]:
        if where == "connecting":
            await interrupted()
        yield Connection(cast(Client, None), "", "", None, None)

    monkeypatch.setattr(following, "connect", connect)
    following_it = following.followed(
        cast(Target, None),
        MemoryStore(),
        lambda connection: interrupted(),
        detach=False,
        json=False,
        further="so",
    )
    assert asyncio.run(following_it) == 130
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith(
        "interrupted before anything" if where == "connecting" else "interrupted as it began"
    )
