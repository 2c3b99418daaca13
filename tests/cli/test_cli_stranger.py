"""Another user of the machine, who has the server's address: what that user can do to the owner of
jobs, and what not.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.cli.main import main
from runtime.server.authentic import PayloadKey
from runtime.server.connection import Target, connect_if_up
from tests.cli.command_line import ROOT, UNHURRIED, CommandLine, gated, wait_for

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user"),
]

EVIL = """
import pathlib

pathlib.Path({marker!r}).touch()

def respond(messages):
    return {{"code": "finish(1)"}}
"""

GATED = """
import pathlib

def respond(messages):
    n = sum(m["role"] == "assistant" for m in messages)
    waits = n == 3 and not pathlib.Path({gate!r}).exists()
    return {{"code": f"x = {{n}}" if n < 6 else "finish(x)", "delay": 100 if waits else 0}}
"""
"""Its fourth reply is long in coming, until the gate is there."""


@pytest.fixture
def open_cli(
    clean_environment: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[CommandLine]:
    """A state directory that everybody may look into, as one that was made by hand is."""
    path = Path(tempfile.mkdtemp(prefix="hold"))
    (path / "home").mkdir()
    for folder in (path, path / "home"):
        folder.chmod(0o755)
    monkeypatch.setenv("HOLDFAST_HOME", str(path / "home"))
    made = CommandLine(path, path / "home", capsys)
    assert made("up").code == 0
    yield made
    made.end()
    assert main(["down"]) == 0
    shutil.rmtree(path)


def stranger(cli: CommandLine, job: str, deed: str) -> dict[str, Any]:
    """What another user's process comes to."""
    evil = cli.path / "evil"
    if not evil.exists():
        evil.mkdir()
        (evil / "evil.py").write_text(EVIL.format(marker=str(cli.path / "ran")))
        shutil.chown(evil, 65_534, 65_534)
    address = cli("status", "--json").json()["server"]["address"]
    arguments = [
        address,
        f"holdfast/{job.split('/')[0]}",
        f"holdfast/{job}",
        str(cli.home),
        str(evil),
        deed,
    ]
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("stranger.py")), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["uid"] == 65_534
    return said


def test_another_user_drives_no_worker_and_reads_nothing(open_cli: CommandLine) -> None:
    """Neither a job of that user's nor a signal is taken; the owner's job ends as it would have; no
    file can be read.
    """
    open_cli.write("slow.py", gated(open_cli.path / "gate"))
    file = open_cli.jobs(f"id: a, model: scripted/slow.py, {UNHURRIED}", batch="mine")
    process = open_cli.start("run", file)
    wait_for(lambda: open_cli.turns("mine", "a") >= 1, "a turn", process)
    said = stranger(open_cli, "mine/a", "try")
    assert said == {"uid": 65_534, "readable": [], "started": "NotSigned", "asked": "refused"}
    open_cli.write("gate", "")
    done = open_cli.finished(process)
    assert (done.code, "mine/a  succeeded after " in done.out) == (0, True)
    assert (
        "refused: a payload of workflow holdfast/mine/a is not signed: it was not given by Holdfast"
        in done.err
    )
    assert "warning: dropped the signal 'message' of holdfast/mine/a: a payload of" in done.err
    assert "deserializing" not in done.err
    assert not (open_cli.path / "ran").exists()


@pytest.mark.parametrize("deed", ["terminate", "delete"])
def test_a_job_that_another_user_ends_goes_on(open_cli: CommandLine, deed: str) -> None:
    """The server lets anybody end a run, or delete it.

    No finished turn is lost: 'replay' goes on, else 'fork'.
    """
    open_cli.write("gated.py", GATED.format(gate=str(open_cli.path / "gate")))
    file = open_cli.jobs("id: a, model: scripted/gated.py", batch="ended")
    process = open_cli.start("run", file)
    wait_for(lambda: open_cli.turns("ended", "a") >= 3, "three turns", process)
    stranger(open_cli, "ended/a", deed)
    if deed == "terminate":
        assert "the workflow was terminated" in open_cli.finished(process).out
    open_cli.end()
    open_cli.write("gate", "")
    again = open_cli(
        *(
            ["replay", "ended/a", "--from", "4"]
            if deed == "terminate"
            else ["fork", "ended/a@4", "--as", "b"]
        )
    )
    assert again.code == 0, again.err
    archive = open_cli.archive("ended", "a" if deed == "terminate" else "b")
    run = archive.runs()[-1]
    end = archive.end(run)
    assert end is not None
    assert (end.status, end.result, end.turn) == ("succeeded", 5, 7)
    steps = [step.run for step in archive.steps(run)]
    assert (len(steps), steps.count(run)) == (7, 4)


def test_a_key_that_is_another_is_told_and_starts_nothing(open_cli: CommandLine) -> None:
    """A command and a worker with another key than the jobs' say so, and what to do; with the right
    one all goes on.
    """
    open_cli.write("slow.py", gated(open_cli.path / "gate"))
    file = open_cli.jobs(f"id: a, model: scripted/slow.py, {UNHURRIED}", batch="keys")
    process = open_cli.start("run", file)
    wait_for(lambda: open_cli.turns("keys", "a") >= 2, "two turns", process)
    open_cli.end()
    before = open_cli.turns("keys", "a")
    words = (
        "is signed with another key than this one: set HOLDFAST_KEY to the line in the file 'key'"
        " of the state"
    )
    other = PayloadKey(b"x" * 32).text
    refused = open_cli.finished(open_cli.start("run", file, HOLDFAST_KEY=other))
    assert (refused.code, words in refused.err, len(refused.err.splitlines()) <= 3) == (
        2,
        True,
        True,
    )
    worker = open_cli.start("worker", HOLDFAST_KEY=other)
    told = ""
    while f"not working on batch keys: a payload of workflow holdfast/keys {words}" not in told:
        assert worker.stderr is not None
        line = worker.stderr.readline()
        assert line, f"the worker ended: {told}"
        told += line
    worker.terminate()
    assert open_cli.finished(worker).code == 0
    assert open_cli.turns("keys", "a") == before
    assert asyncio.run(_failed_tasks()) == 0
    open_cli.write("gate", "")
    assert open_cli("run", file).code == 0


async def _failed_tasks() -> int:
    async with connect_if_up(Target()) as connection:
        assert connection is not None
        history = await connection.client.get_workflow_handle("holdfast/keys/a").fetch_history()
    return sum(event.HasField("workflow_task_failed_event_attributes") for event in history.events)
