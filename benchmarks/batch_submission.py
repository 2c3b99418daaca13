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
from runtime.jobsfile.load import load
from runtime.server.connection import connect
from runtime.server.target import Target
from runtime.worker.worker import running_worker
from workflows.messages import batch_queue


def measured(directory: Path) -> tuple[float, float, float, float]:
    """Seconds of the check and of the submission; the most memory of the client and of the worker,
    in MiB.
    """
    environment = {**os.environ, "HOLDFAST_HOME": str(directory / "home")}
    module = [sys.executable, "-m", "benchmarks.batch_submission", str(directory)]
    with subprocess.Popen(
        [*module, "worker"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as worker:
        assert worker.stdout is not None and worker.stdin is not None
        worker.stdout.readline()
        done = subprocess.run(module, env=environment, stdout=subprocess.PIPE, check=True)
        worker.stdin.close()
        size = float(worker.stdout.readline())
    checked, submitted, client = json.loads(done.stdout)
    return checked, submitted, client, size


def _most() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def _submit(directory: Path) -> None:
    began = time.monotonic()
    batch = load(directory / "jobs.yaml").batch
    checked = time.monotonic()
    async with connect(Target()) as connection:
        control = Control(connection.client, archive_of(None))
        plan = await control.plan(batch, rerun_failed=False)
        await control.submit(plan)
    print(json.dumps([checked - began, time.monotonic() - checked, _most()]))


async def _work() -> None:
    """Be the batch's worker until stdin ends."""
    async with (
        connect(Target()) as connection,
        running_worker(connection.client, archive_of(None), task_queue=batch_queue("many")),
    ):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        print(_most(), flush=True)
        # Jobs run by now, which nobody waits for.
        os._exit(0)


if __name__ == "__main__":
    asyncio.run(_work() if sys.argv[2:] else _submit(Path(sys.argv[1])))
