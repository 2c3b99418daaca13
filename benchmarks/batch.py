"""A batch on the embedded stack: ``python -m benchmarks.batch [--jobs N] [--turns N] [--workers N
...] [--undisturbed] [--submit N]``.

Scripted jobs are run by ``holdfast run`` with so many processes. Meanwhile a process of the crew is
killed, a ``holdfast worker`` is added, and the Temporal server is killed, each when a share of the
jobs has ended. Then every job must have succeeded, in one run with all its turns. The rows tell the
turns a second, those of one activity each in a bare workflow on the same stack (the floor), and the
most memory that each kind of process had. ``--submit N`` measures the submission of N jobs: their
definitions are checked, archived in pages and given to the batch, in a process that ends there.
``--write FILE`` puts the tables between the marks of their names.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.blocks import write_block
from runtime.worker.nursery import WORKER

BLOCK, SUBMIT_BLOCK = "batch", "batch-submission"
JOBS, TURNS, SUBMITTED = 500, 5, 100_000
CONCURRENCY = 64
LOOK_SECONDS = 0.5
LOOKED_AT = 2500
"""Jobs that are counted in that time: a look at more of them comes less often."""

_HOLDFAST = "from holdfast.__main__ import entry; entry()"
POLICY = """
def respond(messages):
    turn = sum(message["role"] == "assistant" for message in messages) + 1
    return {"code": "finish(turn)" if turn == TURNS else f"turn = {turn}"}
"""
KINDS = {
    "run": "`holdfast run`",
    "member": "a process of its crew",
    "worker": "`holdfast worker`",
    "temporal": "Temporal",
}
HEAD = (
    (
        "| processes | jobs | killed meanwhile | seconds | turns a second | of the floor |"
        f" {' | '.join(f'{name}, MiB' for name in KINDS.values())} |"
    ),
    "|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|",
)


@dataclass
class Place:
    """A directory with a jobs file, and its state directory; ``most`` has the most memory that each
    kind of process had, in MiB.
    """

    path: Path
    most: dict[str, float] = field(default_factory=dict)
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def lay_out(self, jobs: int, turns: int) -> None:
        """The jobs file, its items and the script."""
        (self.path / "ws").mkdir()
        (self.path / "policy.py").write_text(POLICY.replace("TURNS", str(turns)))
        with (self.path / "items.jsonl").open("w") as items:
            items.writelines(json.dumps({"name": f"job-{n:06}"}) + "\n" for n in range(jobs))
        (self.path / "jobs.yaml").write_text(
            f"batch: many\nconcurrency: {CONCURRENCY}\njobs:\n- id: '{{name}}'\n"
            "  for_each: items.jsonl\n  goal: Count for {name}.\n  workspace: ws\n"
            "  model: scripted/policy.py\n"
        )

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Give a command."""
        environment = {**os.environ, "HOLDFAST_HOME": str(self.path / "home")}
        name = self.path / arguments[0]
        with name.with_suffix(".out").open("ab") as out, name.with_suffix(".err").open("ab") as err:
            process = subprocess.Popen(
                [sys.executable, "-c", _HOLDFAST, *arguments],
                cwd=self.path,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        self.started.append(process)
        return process

    def processes(self) -> Iterator[tuple[int, str]]:
        """The processes of this state directory, each with its kind."""
        home = self.path / "home"
        ours = f"HOLDFAST_HOME={home}".encode()
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if not entry.name.isdigit():
                    continue
                # The server has an environment of its own, and works where its files are.
                known = (entry / "cwd").readlink() == (home / "server").resolve() or ours in (
                    entry / "environ"
                ).read_bytes().split(b"\0")
                line = (entry / "cmdline").read_bytes().split(b"\0")
                name = (entry / "comm").read_text().strip()
                if known and (kind := _kind(name, line)):
                    yield int(entry.name), kind

    def look(self) -> dict[str, list[int]]:
        """The processes by kind; their memory is taken note of."""
        found: dict[str, list[int]] = {}
        for pid, kind in self.processes():
            found.setdefault(kind, []).append(pid)
            with suppress(OSError):
                self.most[kind] = max(self.most.get(kind, 0.0), resident(pid) / 2**20)
        return found

    def ended(self) -> int:
        """How many jobs have ended."""
        return sum(1 for _ in (self.path / "home" / "archive").glob("many/*/ends/*"))


def resident(pid: int) -> int:
    """What a process has in memory, in bytes.

    Raises:
        OSError: if there is no such process any more.
    """
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def _kind(name: str, line: Sequence[bytes]) -> str:
    if b"runtime.cli.member" in line:
        return "member" if name == WORKER else "nursery"
    if any(part.endswith(b"temporal") for part in line[:1]):
        return "temporal"
    for command in ("run", "worker"):
        if line[1:2] == [b"-c"] and command.encode() in line:
            return command
    return ""


@contextmanager
def made_place() -> Iterator[Place]:
    """A place that is gone after the block, with what was started there and its server."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        made = Place(Path(folder))
        try:
            yield made
        finally:
            for process in made.started:
                process.kill()
                process.wait()
            # The server outlives the commands that were killed.
            made.start("down").wait()


def worked(jobs: int, turns: int, workers: int, *, disturbed: bool) -> tuple[Place, float, str]:
    """Run a batch; what was there, the seconds from its first end to its last, and the kills.

    Raises:
        AssertionError: if a job is not accounted for.
    """
    with made_place() as made:
        made.lay_out(jobs, turns)
        run = made.start("run", "jobs.yaml", "--workers", str(workers), "--json")
        helper: subprocess.Popen[bytes] | None = None
        killed: list[str] = []
        began = (0, 0.0)
        while run.poll() is None:
            found, ended = made.look(), made.ended()
            if ended and not began[0]:
                began = (ended, time.monotonic())
            if disturbed:
                if ended > jobs // 5 and "process" not in killed and "member" in found:
                    os.kill(found["member"][0], signal.SIGKILL)
                    killed.append("process")
                if ended > 2 * jobs // 5 and helper is None:
                    helper = made.start("worker", "--processes", "1")
                if ended > 3 * jobs // 5 and "server" not in killed and "temporal" in found:
                    os.kill(found["temporal"][0], signal.SIGKILL)
                    killed.append("server")
                if ended > 4 * jobs // 5 and helper is not None and "worker" not in killed:
                    helper.kill()
                    killed.append("worker")
            time.sleep(LOOK_SECONDS * max(1, jobs // LOOKED_AT))
        # From the first ends that were seen, put in relation to all jobs: starting the stack is no
        # part of it.
        seconds = (time.monotonic() - began[1]) * jobs / max(jobs - began[0], 1)
        if helper is not None:
            helper.kill()
            helper.wait()
        _account(made, jobs, turns, run.returncode)
        return made, seconds, ", ".join(killed) or "nothing"


def _account(made: Place, jobs: int, turns: int, code: int) -> None:
    summary = json.loads((made.path / "run.out").read_text().splitlines()[-1])
    ended = [(job["status"], job["turns"]) for job in summary["jobs"]]
    assert (code, ended) == (0, [("succeeded", turns)] * jobs), f"exit code {code}"
    # One run each: a kill may delay a job, and must not begin it anew.
    runs = sum(1 for _ in (made.path / "home" / "archive").glob("many/*/runs/*"))
    assert runs == jobs, f"{runs} runs of {jobs} jobs"


def floor() -> float:
    """Activities a second of bare workflows, as many at a time as the jobs, one worker."""
    from benchmarks.batch_floor import measured

    return measured(CONCURRENCY)


def rows(jobs: int, turns: int, counts: Sequence[int], *, disturbed: bool) -> str:
    """The table."""
    bare = floor()
    lines = [*HEAD, f"| floor | | | | {bare:,.1f} | 100 % | | | | |"]
    for workers in counts:
        made, seconds, killed = worked(jobs, turns, workers, disturbed=disturbed)
        rate = jobs * turns / seconds
        memory = " | ".join(_mib(made.most, kind) for kind in KINDS)
        lines.append(
            f"| {workers} | {jobs:,} of {turns} turns | {killed} | {seconds:,.0f} | {rate:,.1f} |"
            f" {100 * rate / bare:.0f} % | {memory} |"
        )
    return "\n".join([*lines, "", f"Load of the machine meanwhile: {os.getloadavg()[1]:.1f}."])


def _mib(most: Mapping[str, float], kind: str) -> str:
    return f"{most[kind]:,.0f}" if kind in most else ""


def submission(jobs: int) -> str:
    """The table of the submission of so many jobs."""
    from benchmarks.batch_submission import measured

    lines = [
        "| jobs | checked, s | archived and submitted, s | client, MiB | worker, MiB |"
        " Temporal, MiB |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    for count in (jobs // 100, jobs // 10, jobs):
        with made_place() as made:
            made.lay_out(count, 1)
            found = measured(made.path)
        cells = (f"{number:,.1f}" for number in found[:2])
        sizes = (f"{number:,.0f}" for number in found[2:])
        lines.append(f"| {count:,} | {' | '.join([*cells, *sizes])} |")
    return "\n".join([*lines, "", f"Load of the machine meanwhile: {os.getloadavg()[1]:.1f}."])


def main(arguments: Sequence[str] | None = None) -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--undisturbed", action="store_true")
    parser.add_argument("--submit", type=int, metavar="N", nargs="?", const=SUBMITTED)
    parser.add_argument("--write", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    if given.submit:
        block, text = SUBMIT_BLOCK, submission(given.submit)
    else:
        block = BLOCK
        text = rows(given.jobs, given.turns, given.workers, disturbed=not given.undisturbed)
    print(text)
    if given.write:
        write_block(given.write, block, text)


if __name__ == "__main__":
    main()
