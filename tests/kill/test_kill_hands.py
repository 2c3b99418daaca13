"""Jobs that change their workspace, killed at every moment: the same trees, and no command's effect
twice, whichever way changes are tracked.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import cycle, islice
from pathlib import Path

import pytest

from runtime.archive.job import JobArchive
from runtime.archive.stores import open_store
from runtime.archive.trees import Trees
from runtime.archive.verify import damage, verify_job
from runtime.archive.workspaces import workspace_after
from runtime.base.home import Home, state_home
from runtime.server.process import read_info
from tests.eventually import alive
from tests.kill.failpoints import HANDS, LOOKED_THROUGH
from tests.kill.nursery import forked, without_overlays
from tests.kill.processes import (
    DEADLINE,
    Process,
    kill_group,
    kill_what_is_left,
    started,
    wait_for,
)

pytestmark = pytest.mark.sandbox

TURNS = 26
"""Of which 25 have four effects each."""

KILLS = 40
KILLS_LOOKED_THROUGH = 12

POLICY = '''
import re

MOVES = [
    """write("src/f{n}.py", "def f():\\\\n    return {n}\\\\n")
print(sh("echo {n} >> log.txt; wc -l < log.txt").stdout)
edit("src/f{n}.py", "return {n}", "return {n} + 1")
print(sh("cat src/*.py | wc -c; mkdir -p made/{n}; cp log.txt made/{n}/").stdout)""",
    """count()
with open("log.txt", "a") as f:
    k = f.write("written {n}\\\\n")
sh("ln -sf log.txt link; chmod 7{m}4 src/f1.py; wc -l < counts.txt")
print(sh("head -c 200000 /dev/zero > big; sha256sum big > sum; rm big; cat sum").stdout)""",
    """move("log.txt", "log-{n}.txt")
sh("cp log-{n}.txt log.txt; echo {n} >> log.txt; rm log-{n}.txt")
print(sh("find . -type f | sort | sha256sum").stdout)
write("src/f1.py", open("log.txt").read())""",
    """import os
os.makedirs("deep/{n}/er")
print(sh("for i in 1 2 3; do echo $i >> deep/{n}/er/x; done; mv deep/{n} deep/m{n}").stdout)
edit("log.txt", "{p}", "{p}!", open("log.txt").read().count("{p}"))
delete("deep")""",
]

def respond(messages):
    n = int(re.findall(r"budget: turn (\\d+) of", str(messages))[-1])
    if n == TURNS:
        return {"code": "finish(sh('find . | sort; cat log.txt').stdout, patch=True)"}
    return {"code": MOVES[(n - 1) % 4].format(n=n, m=n % 8, p=n - 3)}
'''

TOOLS = """
from pathlib import Path
from holdfast import tool

@tool(workspace=True, retries=20)
def count(*, workspace: Path) -> int:
    "Note a line; how many there are."
    counts = workspace / "counts.txt"
    before = counts.read_text() if counts.exists() else ""
    counts.write_text(before + "one more\\n")
    return len(before.splitlines()) + 1
"""

JOBS = """
batch: b
jobs:
  - id: a
    goal: Change files.
    workspace: {from: src, write: true}
    model: scripted/policy.py
    tools: ["mine:count"]
    budget: {turns: 99}
"""


class Victim(StrEnum):
    """Whom a strike kills. The worker's process is that of its activities too."""

    WORKER = "the worker alone: what it has started must see by itself that it is gone"
    SERVER = "the server alone, which the worker's process starts again"
    EVERYTHING = "the server, the worker and all that it has started"
    COMMAND = "the sandbox of the next command"
    TOOL = "the process of the next call of a tool"
    INTERPRETER = "the interpreters"


STARTED = {
    Victim.COMMAND: b"/bwrap\0",
    Victim.TOOL: b"runtime.tools.child",
    Victim.INTERPRETER: b"monty",
}
"""What is in the command lines of processes that the worker's starts."""


@dataclass(frozen=True)
class Ended:
    """What a job came to: its result, and its version after each turn."""

    result: str
    versions: tuple[str, ...]


class Hands:
    """One job in a state directory of its own, on a host with overlays or ``without``."""

    def __init__(self, path: Path, *, without: bool = False) -> None:
        self.path = path
        self.without = without
        self.home: Home = state_home({"HOLDFAST_HOME": str(path / "home")})
        (path / "src").mkdir(parents=True)
        (path / "src" / "log.txt").write_text("0\n")
        (path / "policy.py").write_text(f"TURNS = {TURNS}\n{POLICY}")
        (path / "mine.py").write_text(TOOLS)
        (path / "jobs.yaml").write_text(JOBS)
        self.given = 0

    def start(self, point: str = "") -> Process:
        """Give the command, once more if it was given before."""
        self.given += 1
        extra = {}
        if point:
            once = str(self.path / f"fired-{self.given}")
            extra = {"HOLDFAST_FAILPOINT": point, "HOLDFAST_FAILPOINT_ONCE": once}
        # Its own process is the worker, which is what the tests kill.
        arguments = ["run", str(self.path / "jobs.yaml"), "--workers", "0", "--json"]
        before = without_overlays if self.without else None
        return forked(self.home.path, arguments, self.path / f"said-{self.given}", extra, before)

    def ends(self, process: Process) -> int:
        """The exit code of a command that is waited for."""
        try:
            return process.wait(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            kill_group(process)
            raise

    def _wait(self, condition: Callable[[], bool], what: str, process: Process) -> None:
        """As ``wait_for``; a failure tells what the command said."""
        try:
            wait_for(condition, what, alive=process)
        except AssertionError as error:
            for said in sorted(self.path.glob(f"said-{self.given}.*")):
                error.add_note(f"{said.name}: {said.read_text()[-4_000:]}")
            raise

    def effects(self) -> int:
        """How many effects are archived."""
        keys = open_store(str(self.home.archive)).list("b/a/turns/")
        return sum(".effect-" in key for key in keys)

    def await_effect(self, mark: int, process: Process) -> None:
        """Wait until so many effects are archived."""
        self._wait(lambda: self.effects() >= mark, f"effect {mark} is archived", process)

    def kill_next(self, process: Process, name: bytes) -> None:
        """Kill the next process that the command's has started for its jobs and whose command line
        has ``name`` in it.
        """
        said = self.path / f"said-{self.given}.out"

        def killed() -> bool:
            # Before it says what it does with its jobs it looks at their tools, in a process too:
            # if that one dies, the command is refused.
            says = said.exists() and said.stat().st_size > 0
            found = started(process.pid, name) if says else set()
            for pid in found:
                # One that has ended by itself was too quick.
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return bool(found)

        self._wait(killed, f"there is a process of {name!r}", process)

    def kill_server(self, process: Process) -> None:
        """Kill the server; the next one if the last has just been killed."""

        def killed() -> bool:
            info = read_info(self.home)
            if info is None or not alive(info.pid):
                return False
            os.kill(info.pid, signal.SIGKILL)
            return True

        self._wait(killed, "there is a server", process)

    def archive(self) -> JobArchive:
        """The job's, opened anew."""
        return JobArchive(open_store(str(self.home.archive)), "b", "a")

    def ended(self) -> Ended:
        """What the job came to; all of it is sound, and the bytes of every version are there."""
        said = (self.path / f"said-{self.given}.out").read_text().splitlines()[-1]
        (job,) = json.loads(said)["jobs"]
        archive = self.archive()
        run = archive.runs()[-1]
        versions = tuple(workspace_after(archive, run, turn) for turn in range(TURNS + 1))
        ways = {"linked", "own"} & {path.name for path in self.home.workspaces.iterdir()}
        # A tool that works on the files has a copy of them in either way.
        assert ways == ({"own"} if self.without else {"linked", "own"})
        assert damage(verify_job(archive)) == []
        trees = Trees(archive.store)
        for _, entry in trees.tree(versions[-1]).under():
            if entry.is_file:
                trees.content(entry)
        return Ended(job["result"], versions)

    def close(self) -> None:
        """Kill what is left."""
        kill_what_is_left(self.home)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """The job that nobody kills."""
    hands = Hands(tmp_path_factory.mktemp("hands"))
    try:
        assert hands.ends(hands.start()) == 0
        return hands.ended()
    finally:
        hands.close()


@pytest.mark.kill
@pytest.mark.server
def test_the_job_is_what_the_tests_say(undisturbed: Ended) -> None:
    """Each turn changes the files."""
    assert len(set(undisturbed.versions)) == TURNS
    lines = undisturbed.result.splitlines()
    assert "./src/f1.py" in lines
    assert lines.count("./log.txt") == 1


@pytest.mark.kill
@pytest.mark.server
@pytest.mark.parametrize(
    ("without", "points"),
    [pytest.param(False, HANDS, id="overlays"), pytest.param(True, LOOKED_THROUGH, id="without")],
)
def test_at_each_fail_point(
    tmp_path: Path, undisturbed: Ended, *, without: bool, points: tuple[str, ...]
) -> None:
    """The worker dies at each of them, in turn."""
    hands = Hands(tmp_path, without=without)
    try:
        for point in points:
            assert hands.ends(hands.start(point)) == -signal.SIGKILL, point
        assert hands.ends(hands.start()) == 0
        assert hands.ended() == undisturbed
    finally:
        hands.close()


@pytest.mark.kill
@pytest.mark.slow
@pytest.mark.server
@pytest.mark.parametrize(
    ("without", "kills"),
    [
        pytest.param(False, KILLS, id="overlays"),
        pytest.param(True, KILLS_LOOKED_THROUGH, id="without"),
    ],
)
def test_at_seeded_moments(
    tmp_path: Path, undisturbed: Ended, *, without: bool, kills: int
) -> None:
    """Every kind of process, each about as often, in an order of the seed."""
    hands = Hands(tmp_path, without=without)
    seeded = random.Random(kills)
    marks = sorted(seeded.sample(range(2, 4 * (TURNS - 1)), kills))
    kinds = list(islice(cycle(Victim), kills))
    seeded.shuffle(kinds)
    victims = iter(kinds)
    try:
        process = hands.start()
        for mark in marks:
            hands.await_effect(mark, process)
            victim = next(victims)
            if (name := STARTED.get(victim)) is not None:
                hands.kill_next(process, name)
                continue
            if victim is not Victim.WORKER:
                hands.kill_server(process)
            if victim is Victim.SERVER:
                continue
            if victim is Victim.EVERYTHING:
                kill_group(process)
            else:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
            process = hands.start()
        assert hands.ends(process) == 0
        assert hands.ended() == undisturbed
    finally:
        hands.close()
