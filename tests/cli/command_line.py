"""``holdfast`` as a user has it: a directory with a jobs file, commands in this process or in one
of their own.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from runtime.archive import keys
from runtime.archive.job import JobArchive
from runtime.archive.stores import open_store
from runtime.archive.stores.directory import DirectoryStore
from runtime.archive.stores.packed import PackedStore
from runtime.cli.main import main
from tests.eventually import pause_after
from tests.forks.forked import Forked, piped

ROOT = Path(__file__).parents[2]
DEADLINE = 300.0
"""Seconds after which a condition that never comes true fails a test, or a command that does not
end.
"""


@dataclass(frozen=True)
class Done:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def summary(self) -> dict[str, Any]:
        """The last line of ``run --json``, by the jobs' ids."""
        last = json.loads(self.out.splitlines()[-1])
        assert last["event"] == "summary"
        return {job["id"]: job for job in last["jobs"]}


@dataclass
class CommandLine:
    """Commands given in ``path``, whose state directory is ``home``."""

    path: Path
    home: Path
    capture: pytest.CaptureFixture[str]
    processes: list[Forked] = field(default_factory=list)

    def write(self, name: str, text: str) -> Path:
        """A file in the directory; one that exists is replaced."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def jobs(self, *jobs: str, name: str = "jobs.yaml", batch: str, head: str = "") -> Path:
        """A jobs file: each of ``jobs`` is the inside of a YAML flow mapping, such as ``id: a,
        model: scripted/a.yaml``.
        """
        (self.path / "ws").mkdir(exist_ok=True)
        defaults = "defaults: {workspace: ./ws, budget: {turns: 30, wall: 2m}}"
        lines = [
            f"batch: {batch}",
            head,
            defaults,
            "jobs:",
            *(f"  - {{goal: g, {job}}}" for job in jobs),
        ]
        return self.write(name, "\n".join(line for line in lines if line) + "\n")

    def __call__(self, *arguments: str | Path) -> Done:
        """Give a command in this process."""
        self.capture.readouterr()
        code = main([str(argument) for argument in arguments])
        return Done(code, *self.capture.readouterr())

    def start(
        self,
        *arguments: str | Path,
        before: Callable[[], None] | None = None,
        **environment: str,
    ) -> Forked:
        """Give a command in a process of its own, the head of its own group, which does something
        ``before``.
        """
        variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        process = piped([*map(str, arguments)], self.path, variables, before)
        self.processes.append(process)
        return process

    def finished(self, process: Forked) -> Done:
        """Wait for a process."""
        out, err = process.communicate(timeout=DEADLINE)
        return Done(process.returncode, out, err)

    def archive(self, batch: str, job: str) -> JobArchive:
        """A job's archive, opened anew."""
        return JobArchive(open_store(str(self.home / "archive")), batch, job)

    def running_and_waiting(
        self, batch: str, running: str, waiting: str, gate: str
    ) -> tuple[Path, Forked]:
        """The file of a batch of two jobs, and the command that works on it: the one has had a turn
        and runs until the file ``gate`` is there, the other waits for its place.
        """
        self.write("gated.py", gated(self.path / gate))
        self.write("good.yaml", script("finish(2)"))
        file = self.jobs(
            f"id: {running}, model: scripted/gated.py, {UNHURRIED}",
            f"id: {waiting}, model: scripted/good.yaml",
            batch=batch,
            head="concurrency: 1",
        )
        process = self.start("run", file)
        wait_for(lambda: self.turns(batch, running) >= 1, "a turn of the first job", process)
        return file, process

    def turns(self, batch: str, job: str) -> int:
        """How many finished turns a job has in the archive."""
        archive = self.archive(batch, job)
        return len(list(archive.steps())) if archive.runs() else 0

    def end(self) -> None:
        """Kill what still runs."""
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()


def wait_for(condition: Callable[[], bool], what: str, process: Forked | None = None) -> None:
    """Wait until ``condition()`` holds, while ``process`` lives."""
    end = time.monotonic() + DEADLINE
    looked = time.monotonic()
    while not condition():
        # What is waited for may have come with the end, or between the two looks.
        if process is not None and process.poll() is not None and not condition():
            raise AssertionError(f"the process ended before: {what}\n{process.communicate()}")
        now = time.monotonic()
        assert now < end, f"this did not come true: {what}"
        time.sleep(pause_after(now - looked))
        looked = time.monotonic()


def damage(path: Path) -> None:
    """Change a byte in the middle of an object of an archive."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o600)
    path.write_bytes(bytes(data))


def unpack(store: Path) -> None:
    """Give each object of an archive its own place, as while its run goes on."""
    inner = DirectoryStore(store)
    packed = PackedStore(inner)
    objects = {key: packed.get(key) for key in packed.list("")}
    for key in list(inner.list("")):
        if keys.packed_prefix(key) is not None:
            inner.remove(key)
    for key, data in objects.items():
        inner.put_if_absent(key, data)


def script(*statements: str, delay: float = 0.0) -> str:
    """A script file whose replies are ``statements``, each after ``delay`` seconds."""
    replies: Sequence[dict[str, Any]] = [{"code": code, "delay": delay} for code in statements]
    return json.dumps(replies)


GATED = """
import pathlib

def respond(messages):
    n = sum(m["role"] == "assistant" for m in messages)
    return {{"code": "finish(1)" if pathlib.Path({gate!r}).exists() else f"x = {{n}}", "delay": 0.2}}
"""

UNHURRIED = "budget: {turns: 9999, wall: 10m}"
"""Of a job that waits for what a test does meanwhile, on however busy a machine."""


def gated(gate: Path) -> str:
    """A script that takes turn after turn until the file ``gate`` is there."""
    return GATED.format(gate=str(gate))


COUNTING = """
def respond(messages):
    n = sum(m["role"] == "assistant" for m in messages)
    return {{"code": f"x = {{n}}" if n < {turns} else f"finish({{n}})", "delay": {delay}}}
"""


def counting(turns: int, delay: float) -> str:
    """A Python script that takes ``turns`` turns of ``delay`` seconds and finishes with their
    number.
    """
    return COUNTING.format(turns=turns, delay=delay)
