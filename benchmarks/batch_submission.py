"""The submission of a batch, in a process of its own: ``python -m benchmarks.batch_submission
DIRECTORY`` prints seconds and MiB as JSON.

The jobs of ``DIRECTORY/jobs.yaml`` are checked, archived in pages, and given to the batch, whose
worker is another process. No job is waited for.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from runtime.cli.stores import archive_of
from runtime.client.control import Control
from runtime.client.planning import plan_batch
from runtime.client.preflight import check
from runtime.client.submission import submit
from runtime.jobsfile.load import load
from runtime.server.connection import connect
from runtime.server.process import read_info
from runtime.server.target import Target
from runtime.worker.worker import running_worker
from workflows.messages import batch_queue


def measured(directory: Path) -> tuple[float, float, float, float, float]:
    """Seconds of the check and of the submission; the most memory of the client, of the worker and
    of the server, in MiB.
    """
    environment = {**os.environ, "HOLDFAST_HOME": str(directory / "home")}
    module = [sys.executable, "-m", "benchmarks.batch_submission", str(directory)]
    with subprocess.Popen(
        [*module, "worker"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as worker:
        assert worker.stdout is not None and worker.stdin is not None
        server = int(worker.stdout.readline())
        done = subprocess.run(module, env=environment, stdout=subprocess.PIPE, check=True)
        peak = _most_of(server)
        worker.stdin.close()
        size = float(worker.stdout.readline())
    checked, submitted, client = json.loads(done.stdout)
    return checked, submitted, client, size, peak


def _most_of(process: int) -> float:
    """The most memory that a process has had so far, in MiB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (told,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return float(told) / 1024


def _most() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def _submit(directory: Path) -> None:
    began = time.monotonic()
    loaded = load(directory / "jobs.yaml")
    check(loaded, None)
    checked = time.monotonic()
    async with connect(Target()) as connection:
        control = Control(connection.client, archive_of(None))
        plan = await plan_batch(control, loaded.batch, rerun_failed=False)
        await submit(control, plan)
    print(json.dumps([checked - began, time.monotonic() - checked, _most()]))


async def _work() -> None:
    """Be the batch's worker until stdin ends."""
    async with (
        connect(Target()) as connection,
        running_worker(connection.client, archive_of(None), task_queue=batch_queue("many")),
    ):
        assert connection.embedded is not None
        server = read_info(connection.embedded)
        assert server is not None
        print(server.pid, flush=True)
        await asyncio.to_thread(sys.stdin.read)
        print(_most(), flush=True)
        # Jobs run by now, which nobody waits for.
        os._exit(0)


if __name__ == "__main__":
    asyncio.run(_work() if sys.argv[2:] else _submit(Path(sys.argv[1])))
