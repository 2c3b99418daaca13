"""``holdfast replay`` and ``fork`` killed on the way: the job is as it was, or it goes on as
ordered; never something between.
"""

import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from runtime.archive.replays import replays
from tests.cli.command_line import CommandLine, script, wait_for
from tests.forks.forked import Forked

pytestmark = [pytest.mark.server, pytest.mark.kill]

TOOL = """
from pathlib import Path

RUNS = Path(__file__).parent / "tool-runs"


def jot(text: str) -> None:
    \"\"\"Leave a line for each run.\"\"\"
    with RUNS.open("a") as file:
        file.write(text + "\\n")
"""

BEFORE = {
    "replay": ("archive.replay.before_put", "archive.replay.after_put", "reset.before"),
    "fork": ("fork.before",),
}
AFTER = {
    "replay": (
        "reset.after",
        "replay.before_claim",
        "archive.claim.before_put",
        "archive.claim.after_put",
        "replay.after_claim",
    ),
    "fork": ("fork.after", "archive.claim.before_put"),
}


@dataclass(frozen=True)
class Killed:
    """A job that has ended, and a command that takes it back to statement 2 and dies at a fail
    point.
    """

    cli: CommandLine
    command: str
    point: str

    @property
    def batch(self) -> str:
        return f"{self.command}-{self.point.replace('.', '-').replace('_', '-')}"

    @property
    def job(self) -> str:
        """The name of the job that the command makes or takes back."""
        return "b" if self.command == "fork" else "a"

    @property
    def arguments(self) -> tuple[str | Path, ...]:
        edited = ("--edit", self.cli.path / "edit.py")
        if self.command == "fork":
            return ("fork", f"{self.batch}/a@2", "--as", "b", *edited)
        return ("replay", f"{self.batch}/a", "--from", "2", *edited)

    def prepare(self) -> None:
        """Have the job run to its end."""
        first, second = (f"jot('{self.batch} {turn}')" for turn in (1, 3))
        read = f"text = open('data.txt').read()\n{second}"
        self.cli.write(
            f"{self.batch}.json",
            script(f"n = 1\n{first}", "n += 1", read, "finish({'n': n, 'text': text})"),
        )
        job = f'id: a, model: scripted/{self.batch}.json, tools: ["jotting:jot"]'
        file = self.cli.jobs(job, batch=self.batch, name=f"{self.batch}.yaml")
        # In this process, which has loaded what a worker needs.
        assert self.cli("run", file, "--workers", "0").code == 0

    def start(self) -> Forked:
        once = self.cli.path / f"{self.batch}.fired"
        return self.cli.start(
            *self.arguments, HOLDFAST_FAILPOINT=self.point, HOLDFAST_FAILPOINT_ONCE=str(once)
        )

    def died(self, process: Forked) -> None:
        done = self.cli.finished(process)
        assert done.code == -signal.SIGKILL, (self.batch, done)
        assert (self.cli.path / f"{self.batch}.fired").exists()

    def ended(self) -> bool:
        """Whether the timeline that was ordered has ended."""
        archive = self.cli.archive(self.batch, self.job)
        runs = archive.runs()
        return (
            len(runs) == (1 if self.command == "fork" else 2) and archive.end(runs[-1]) is not None
        )

    def check(self, runs: Counter[str], *, orders: int) -> None:
        """One outcome, as ordered; the old timeline as it was; nothing called or executed again
        that was before.
        """
        old = self.cli.archive(self.batch, "a")
        archive = self.cli.archive(self.batch, self.job)
        first, new = old.runs()[0], archive.runs()[-1]
        assert old.end(first).result == {"n": 2, "text": "data\n"}
        assert archive.end(new).result == {"n": 40, "text": "data\n"}
        assert len(old.runs()) + (len(archive.runs()) if self.command == "fork" else 0) == 2
        assert [step.run for step in archive.steps(new)] == [first, new, new, new]
        assert [len(archive.attempts(new, turn)) for turn in (1, 2, 3, 4)] == [1, 1, 1, 1]
        assert (runs[f"{self.batch} 1"], runs[f"{self.batch} 3"]) == (1, 2)
        found = replays(archive)
        assert [replay.run for replay in found if replay.run is not None] == [new]
        assert len(found) == orders
        assert self.cli("verify", f"{self.batch}/{self.job}").code == 0


@pytest.fixture
def lay_out(cli: CommandLine) -> None:
    cli.write("ws/data.txt", "data\n")
    cli.write("edit.py", "n = 40")
    cli.write("jotting.py", TOOL)


def _tool_runs(cli: CommandLine) -> Counter[str]:
    return Counter((cli.path / "tool-runs").read_text().splitlines())


@pytest.mark.usefixtures("lay_out")
@pytest.mark.parametrize("command", ["replay", "fork"])
def test_killed_before_it_began(cli: CommandLine, command: str) -> None:
    """Nothing has happened, and the same command does it; an order that nobody claimed stays, and
    harms nothing.
    """
    killed = [Killed(cli, command, point) for point in BEFORE[command]]
    for one in killed:
        one.prepare()
    processes = [one.start() for one in killed]
    for one, process in zip(killed, processes, strict=True):
        one.died(process)
        assert len(cli.archive(one.batch, "a").runs()) == 1
        assert cli(*one.arguments).code == 0
        one.check(_tool_runs(cli), orders=1 if one.point.endswith("before_put") else 2)


@pytest.mark.usefixtures("lay_out")
def test_killed_after_it_began(cli: CommandLine) -> None:
    """The job goes on as ordered with the next worker, although its batch is done.

    The same fork again is that one.
    """
    killed = [Killed(cli, command, point) for command, points in AFTER.items() for point in points]
    for one in killed:
        one.prepare()
    for number in range(0, len(killed), 3):
        some = killed[number : number + 3]
        for one, process in zip(some, [one.start() for one in some], strict=True):
            one.died(process)
    worker = cli.start("worker")
    for one in killed:
        wait_for(one.ended, f"{one.batch} ends", worker)
    worker.send_signal(signal.SIGTERM)
    assert cli.finished(worker).code in {0, 130}
    for one in killed:
        one.check(_tool_runs(cli), orders=1)
    again = cli(*killed[-1].arguments)
    assert (again.code, "is there already, run " in again.out) == (0, True)
    killed[-1].check(_tool_runs(cli), orders=1)
