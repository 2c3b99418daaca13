"""A job whose statements compute for long, with its worker killed half way: ``python -m
benchmarks.long_statements [STATEMENTS]``.

Each statement uses 0.8 s of the interpreter, so to replay all of them would take minutes, where a
workflow task has one. The job goes on in another run before its statements amount to a quarter of
that. ``holdfast run`` is killed with ``kill -9`` after half of the statements and given again; what
the table tells is out of the server's histories, each of which is replayed and timed. ``--write
docs/benchmarks.md`` puts it there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHistory

from benchmarks.blocks import hand_over
from runtime.archive.job import JobArchive
from runtime.archive.stores import open_store
from runtime.base.home import Home
from runtime.base.values import JobKey
from runtime.base.workflow_ids import job_workflow_id
from runtime.interpreter import pool
from runtime.job.stops import JobStatus
from runtime.server.connection import Target, connect
from tests.kill.processes import holdfast, kill_group
from tests.workflow.stage import events_of, replayer

STATEMENTS = 200
SECONDS = 0.8
BATCH = "long"
BLOCK = "long"


@dataclass(frozen=True)
class Long:
    """What came of the job. Times are in seconds; tasks are workflow tasks of all runs."""

    statements: int
    median: float
    over_limit: int
    runs: int
    most_in_run: int
    longest_replay: float
    timed_out: int
    failed: int
    calls: int

    def table(self) -> str:
        """The figures as a table."""
        rows = [
            ("statements", f"{self.statements:,}"),
            ("interpreter time of a statement, median", f"{self.median:.2f} s"),
            ("statements over the limit of a statement's time", f"{self.over_limit}"),
            ("workers", "2, the first killed half way"),
            ("runs in which the job went on", f"{self.runs}"),
            ("most statements in a run", f"{self.most_in_run}"),
            (
                "longest replay of a run",
                f"{self.longest_replay:.1f} s (a workflow task may take 60 s)",
            ),
            ("workflow tasks that failed", f"{self.failed}"),
            ("workflow tasks that timed out, the killed worker's among them", f"{self.timed_out}"),
            ("model calls", f"{self.calls:,}"),
        ]
        return "\n".join(["| | |", "|---|--:|", *(f"| {name} | {value} |" for name, value in rows)])


def busy(count: int) -> str:
    """A statement that counts so far."""
    return f"n = 0\nwhile n < {count}:\n    n += 1\ndone += 1"


def calibrated(seconds: float) -> int:
    """How far a statement counts in so many seconds on this machine."""
    with pool.session() as session:
        session.feed_run("done = 0")
        count, took = 200_000, 0.0
        # Until it takes long enough to be measured.
        while took < seconds / 4:
            count *= 2
            started = time.perf_counter()
            session.feed_run(busy(count))
            took = time.perf_counter() - started
    return int(count * seconds / took)


def run_job(home: Path, statements: int, count: int) -> None:
    """Run the job with ``holdfast run``, killed once after half of its statements and given again.

    Raises:
        AssertionError: if it ends before it is killed, or does not end well.
    """
    script = [{"code": "done = 0"}, *[{"code": busy(count)}] * statements, {"code": "finish(done)"}]
    (home / "script.json").write_text(json.dumps(script))
    (home / "workspace").mkdir()
    job: dict[str, Any] = {
        "id": "job",
        "goal": "Count.",
        "workspace": "workspace",
        "model": "scripted/script.json",
    }
    job["budget"] = {"turns": statements + 10}
    (home / "jobs.yaml").write_text(json.dumps({"batch": BATCH, "jobs": [job]}))
    _wait(holdfast(home, ["up"], home / "up", {}))
    archive = JobArchive(open_store(str(Home(home).archive)), BATCH, "job")
    first = holdfast(home, ["run", "jobs.yaml"], home / "first", {})
    while (
        archive.last_start() is None
        or archive.find_step(archive.runs()[-1], statements // 2) is None
    ):
        assert first.poll() is None, (
            f"it ended before it was killed: {(home / 'first.err').read_text()}"
        )
        time.sleep(0.1)
    kill_group(first)
    _wait(holdfast(home, ["run", "jobs.yaml"], home / "second", {}))


def _wait(process: subprocess.Popen[bytes]) -> None:
    assert process.wait() == 0, f"{process.args} ended with {process.returncode}"


async def told(home: Path, statements: int) -> Long:
    """What the archive and the server's histories tell of the job."""
    archive = JobArchive(open_store(str(Home(home).archive)), BATCH, "job")
    runs = archive.runs()
    end = archive.end(runs[-1])
    assert end is not None and end.status == JobStatus.SUCCEEDED, end
    steps = list(archive.steps(runs[-1]))
    # The first statement only sets the counter.
    executions = [step.execution for step in steps if step.execution is not None][1:]
    over = sum(execution["status"] == "timeout" for execution in executions)
    assert (len(steps), end.result) == (statements + 2, statements - over)
    async with connect(Target(), home=Home(home)) as connection:
        histories = [await _history(connection.client, run) for run in runs]
    replays = []
    for history in histories:
        started = time.perf_counter()
        await replayer(Home(home)).replay_workflow(history)
        replays.append(time.perf_counter() - started)
    spans = [sum(step.run == run for step in steps) for run in runs]
    return Long(
        statements=statements,
        median=statistics.median(execution["cost"]["time_ms"] for execution in executions) / 1000,
        over_limit=over,
        runs=len(runs),
        most_in_run=max(spans),
        longest_replay=max(replays),
        timed_out=sum(len(events_of(history, "WORKFLOW_TASK_TIMED_OUT")) for history in histories),
        failed=sum(len(events_of(history, "WORKFLOW_TASK_FAILED")) for history in histories),
        calls=sum(len(archive.attempts(step.run, step.turn)) for step in steps),
    )


async def _history(client: Client, run: str) -> WorkflowHistory:
    key = JobKey(batch=BATCH, job="job")
    handle: Any = client.get_workflow_handle(job_workflow_id(key), run_id=run)
    history: WorkflowHistory = await handle.fetch_history()
    return history


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("statements", nargs="?", type=int, default=STATEMENTS)
    parser.add_argument("--write", type=Path, metavar="FILE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hold") as folder:
        home = Path(folder)
        try:
            run_job(home, options.statements, calibrated(SECONDS))
            found = asyncio.run(told(home, options.statements))
        finally:
            _wait(holdfast(home, ["down"], home / "down", {}))
    hand_over(found.table(), BLOCK, options.write)


if __name__ == "__main__":
    main()
