"""Tools with a queue of their own: certain workers alone make their calls."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from tests.cli.command_line import CommandLine, script, wait_for

TOOLS = """
import os, time
from pathlib import Path
from holdfast import tool

HERE = Path(__file__).parent

def here() -> str:
    "Where calls are made that anybody may make."
    return os.environ.get("MARK", "")

@tool(queue="gpu")
def there() -> str:
    "Where calls are made of that queue; they wait until they may go on."
    (HERE / f"called-{os.getppid()}-{os.getpid()}").touch()
    while not (HERE / "go").exists():
        time.sleep(0.02)
    return os.environ.get("MARK", "")

@tool(queue="gpu", workspace=True)
def build(*, workspace: Path) -> str:
    "Work on the job's files."
    (workspace / "built").write_text(os.environ.get("MARK", ""))
    return os.environ.get("MARK", "")
"""

JOB = (
    "id: a, model: scripted/a.json, tools: ['mine:here', 'mine:there', 'mine:build'],"
    " workspace: {write: true, sandbox: none}, budget: {turns: 30, wall: 30m}"
)
RESULT = ["batch", "gpu", "gpu", "gpu"]


def row(cli: CommandLine, batch: str) -> dict[str, Any]:
    """The job as ``ls`` has it; nothing before it has begun."""
    done = cli("ls", batch, "--json")
    return next(iter(done.json() if done.code == 0 else []), {"status": "", "reason": ""})


@pytest.fixture
def waiting(cli: CommandLine) -> CommandLine:
    """A job that ``run`` works on, and that waits for a worker of the queue."""
    cli.write("mine.py", TOOLS)
    call = "x = there()\ny = build()"
    cli.write("a.json", script(call, 'finish([here(), x, y, open("built").read()])'))
    cli.start("run", cli.jobs(JOB, batch="queued"), "--json", MARK="batch")
    wait_for(
        lambda: row(cli, "queued")["reason"] == "waits for a worker with --queue gpu",
        "the job waits for the queue",
        cli.processes[0],
    )
    return cli


def test_a_call_waits_for_a_worker_of_its_queue(waiting: CommandLine) -> None:
    """Which alone makes it, in whatever directory; one that is killed is followed by another; a
    frozen replay needs none.
    """
    cli, run = waiting, waiting.processes[0]
    assert row(cli, "queued")["status"] == "waiting"
    assert list(cli.path.glob("called-*")) == []
    assert cli("log", "queued/a").out.splitlines()[-1] == (
        "now: waiting: waits for a worker with --queue gpu"
    )

    assert run.stdout is not None
    assert any('"awaits": "gpu"' in line for line in run.stdout)
    first = cli.start("worker", "--queue", "gpu", "--processes", "1", MARK="gpu")
    wait_for(lambda: len(list(cli.path.glob("called-*"))) == 1, "the tool runs", first)
    assert next(cli.path.glob(f"called-{first.pid}-*")).exists()
    os.kill(first.pid, signal.SIGKILL)
    second = cli.start(
        "worker", "--queue", "other", "--queue", "gpu", "--processes", "1", MARK="gpu"
    )
    wait_for(
        lambda: len(list(cli.path.glob(f"called-{second.pid}-*"))) == 1, "it runs again", second
    )
    cli.write("go", "")
    done = cli.finished(run)
    assert (done.code, done.summary()["a"]["result"]) == (0, RESULT)

    os.kill(second.pid, signal.SIGKILL)
    again = cli("replay", "queued/a", "--from", "1", "--mode", "reexecute", "--frozen")
    assert again.code == 0
    assert len(list(cli.path.glob("called-*"))) == 2


def test_what_is_refused(cli: CommandLine) -> None:
    """A name that is none, a queue beside a batch, a queue and a limit of one tool."""
    cli.write("mine.py", TOOLS)
    cli.write("a.json", script("finish(1)"))
    assert cli("worker", "--queue", "g p u").code == 2
    beside = cli("worker", "--queue", "gpu", "--batch", "b")
    assert (beside.code, "goes with no other choice" in beside.err) == (2, True)
    limits = "limits: {tools: {'mine:there': {concurrent: 1}}}"
    refused = cli("run", cli.jobs(JOB, batch="both", head=limits), "--dry-run")
    assert refused.code == 2
    assert "'there' has queue='gpu', and limits.tools names it" in refused.err
