"""``examples/fix``: a job that mends a published package, and workers killed while its tests
run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from runtime.archive.job import JobArchive
from runtime.archive.stores import open_store
from runtime.archive.verify import damage, verify_job
from runtime.archive.workspaces import workspace_after
from runtime.base.home import Home, state_home
from tests.kill.nursery import forked
from tests.kill.processes import (
    DEADLINE,
    ROOT,
    Process,
    await_gone,
    descendants,
    kill_group,
    kill_what_is_left,
    wait_for,
)

pytestmark = [pytest.mark.sandbox, pytest.mark.kill, pytest.mark.server, pytest.mark.slow]

TURNS = 12
FIELDS = "src/marshmallow/fields.py"
TRUNCATED = "        return int(value.total_seconds() / base_unit.total_seconds())"
ROUNDED = (
    "        return int(round(value.total_seconds() / base_unit.total_seconds()))"
    "  # round to nearest int"
)
"""What the recorded model made of it, in ``SWE-agent``'s trajectory of marshmallow 1867."""

TEST_RUNS = (3, 11)
"""The turns that run the package's own tests."""

UNREACHABLE = re.compile(r"connection|timed out|resolve|no matching distribution", re.IGNORECASE)


@dataclass(frozen=True)
class Ended:
    """What the job came to: its result, its version after each turn, and its patch."""

    result: dict[str, object]
    versions: tuple[str, ...]
    patch: str


class Fix:
    """The example's first job, in a state directory of its own."""

    def __init__(self, example: Path, path: Path) -> None:
        self.path = path
        self.jobs = example / "marshmallow-alone.yaml"
        self.home: Home = state_home({"HOLDFAST_HOME": str(path / "home")})
        self.given = 0

    def start(self) -> Process:
        """Give the command, once more if it was given before."""
        return self._said("run", str(self.jobs), "--json")

    def ends(self, process: Process) -> int:
        """The exit code of a command that is waited for."""
        try:
            return process.wait(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            kill_group(process)
            raise

    def prints(self, *arguments: str) -> str:
        """What a command prints that succeeds."""
        assert self.ends(self._said(*arguments)) == 0
        return (self.path / f"said-{self.given}.out").read_text()

    def has_effect(self, turn: int) -> bool:
        """Whether the first effect of a turn is archived."""
        turns = self.home.archive / "fix" / "marshmallow" / "turns"
        return any(turns.glob(f"*/*/{turn:07}.effect-000000"))

    def tests_running(self, turn: int, process: Process) -> set[int]:
        """The processes of a turn's run of the package's tests, once there are any."""

        def found() -> set[int]:
            return descendants(process.pid, b"-m\0pytest\0-q\0tests\0")

        wait_for(
            lambda: self.has_effect(turn - 1) and bool(found()),
            f"the tests of turn {turn} run",
            alive=process,
        )
        return found()

    def ended(self, printed: str) -> Ended:
        """What the job came to; all of it is sound."""
        (job,) = json.loads(printed.splitlines()[-1])["jobs"]
        archive = JobArchive(open_store(str(self.home.archive)), "fix", "marshmallow")
        run = archive.runs()[-1]
        assert damage(verify_job(archive)) == []
        versions = tuple(workspace_after(archive, run, turn) for turn in range(TURNS + 1))
        patch = self.prints("workspace", "patch", "fix/marshmallow")
        return Ended(job["result"], versions, patch)

    def close(self) -> None:
        """Kill what is left."""
        kill_what_is_left(self.home)

    def _said(self, *arguments: str) -> Process:
        self.given += 1
        return forked(self.home.path, arguments, self.path / f"said-{self.given}", {})


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``examples/fix`` with the package's sources, its first job in a file of its own."""
    path = tmp_path_factory.mktemp("fix") / "fix"
    shutil.copytree(ROOT / "examples" / "fix", path, ignore=shutil.ignore_patterns("sources"))
    prepared = subprocess.run(
        [path / "prepare", "marshmallow"],
        env={**os.environ, "PYTHON": sys.executable, "PIP_RETRIES": "1"},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    if prepared.returncode and UNREACHABLE.search(prepared.stderr):
        pytest.skip(f"the package index cannot be reached: {prepared.stderr[-500:]}")
    assert prepared.returncode == 0, prepared.stderr
    jobs = (path / "jobs.yaml").read_text()
    (path / "marshmallow-alone.yaml").write_text(jobs.partition("  - id: pydicom")[0])
    return path


@pytest.fixture(scope="module")
def undisturbed(example: Path, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """The job that nobody kills; its tools tell who wrote the line that it changed."""
    fix = Fix(example, tmp_path_factory.mktemp("undisturbed"))
    try:
        ended = fix.ended(fix.prints("run", str(fix.jobs), "--json"))
        blamed = fix.prints("blame", "fix/marshmallow", f"{FIELDS}:1473-1475", "--json")
        lines = json.loads(blamed)["lines"]
        assert [line["turn"] for line in lines] == [0, 8, 0]
        assert lines[1]["text"] == f"{ROUNDED}\n"
        return ended
    finally:
        fix.close()


def test_the_recorded_fix_results(undisturbed: Ended) -> None:
    """The reproduction fails before and passes after it, the package's own tests pass both times,
    and the patch is the recorded one.
    """
    result = undisturbed.result
    assert (result["before"], result["after"]) == ("344", "345")
    before, after = result["tests"]  # type: ignore[misc]
    assert before == after
    assert re.fullmatch(r"\d{4} passed(, \d+ warnings?)?", before)
    for patch in (undisturbed.patch, str(result["patch"])):
        changed = [line for line in patch.splitlines() if re.match(r"[-+] ", line)]
        assert changed == [f"-{TRUNCATED}", f"+{ROUNDED}"]


def test_killed_while_the_tests_run(example: Path, undisturbed: Ended, tmp_path: Path) -> None:
    """``kill -9`` of the worker in the middle of each run of the tests: the run ends with it, and
    is made anew on the same files.
    """
    fix = Fix(example, tmp_path)
    try:
        process = fix.start()
        for turn in TEST_RUNS:
            running = fix.tests_running(turn, process)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            await_gone(running)
            assert not fix.has_effect(turn)
            process = fix.start()
        printed = fix.path / f"said-{fix.given}.out"
        assert fix.ends(process) == 0
        assert fix.ended(printed.read_text()) == undisturbed
    finally:
        fix.close()
