"""How long a cold worker takes to go on with a job: ``python -m benchmarks.resume [TURNS ...]``.

A worker runs a job up to turn N and is stopped between two turns; another, which has nothing in
memory, goes on. It replays the run that is open, which began at the last checkpoint, and not the
job: so what it replays is bounded, however long the job is. The time is from the start of the new
worker in a warm process to the second archived step: the call for the first may be waiting for any
worker, and tells nothing of the replay. ``--write docs/benchmarks.md`` puts the table there.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.api.enums.v1 import PendingWorkflowTaskState
from temporalio.client import WorkflowExecutionDescription, WorkflowHandle

from benchmarks.blocks import write_block
from runtime.archive.job import JobArchive
from tests.servers.temporal_server import temporal_server
from tests.workflow.stage import Stage

BLOCK = "resume"
TURNS = (100, 1_000, 2_000)
POLICY = """
import re


def respond(messages):
    turn = int(re.findall(r"budget: turn (\\d+) of", str(messages[-1]["content"]))[-1])
    return {"code": f"seen = {turn}\\nprint('turn', seen)"}
"""


@dataclass(frozen=True)
class Resumed:
    """One resumption: the job's turns and runs, the events of its open run, and seconds to the
    second step.
    """

    turns: int
    runs: int
    events: int
    seconds: float

    def row(self) -> str:
        """A row of the table."""
        return f"| {self.turns:,} | {self.runs} | {self.events:,} | {self.seconds:.2f} s |"


_STARTED = PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_STARTED
HEADER = "| turns before | runs | events replayed | until the second step |\n|---|---|---|---|"


async def measure(turns: int, path: Path) -> Resumed:
    """Run a job for so many turns, stop its worker, and time another."""
    async with temporal_server() as environment:
        return await _measure(Stage(environment.client, path, "resume"), turns)


async def _measure(stage: Stage, turns: int) -> Resumed:
    model = stage.path / "policy.py"
    await asyncio.to_thread(model.write_text, POLICY)
    # More turns than are needed: the job must not end while it is measured.
    spec = stage.spec(f"scripted/{model}", id="job", turns=10 * turns, context_tokens=8_000)
    archive = JobArchive(stage.store, stage.batch, "job")
    async with stage.open():
        handle = await stage.start(spec)
        await _until(archive, turns)
    before = _newest(archive)
    description = await _idle(handle)
    events = description.raw_description.workflow_execution_info.history_length
    started = time.monotonic()
    async with stage.open():
        await _until(archive, before + 2)
        seconds = time.monotonic() - started
        await handle.terminate()
    return Resumed(before, len(archive.runs()), events, seconds)


async def _idle(handle: WorkflowHandle[Any, Any]) -> WorkflowExecutionDescription:
    """The job, once no workflow task is with a worker: the server gives up after a minute one that
    the old worker dropped.
    """
    while True:
        description = await handle.describe()
        if description.raw_description.pending_workflow_task.state != _STARTED:
            return description
        await asyncio.sleep(0.1)


async def _until(archive: JobArchive, turn: int) -> None:
    while not await asyncio.to_thread(_has, archive, turn):  # noqa: ASYNC110 - an archive wakes nobody
        await asyncio.sleep(0.01)


def _has(archive: JobArchive, turn: int) -> bool:
    runs = archive.runs()
    return bool(runs) and archive.find_step(runs[-1], turn) is not None


def _newest(archive: JobArchive) -> int:
    """The last turn that has a step."""
    return max(step.turn for step in archive.steps())


def main() -> None:
    """Measure, and print the table or put it into a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("turns", nargs="*", type=int, default=TURNS)
    parser.add_argument("--write", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    rows = []
    for turns in arguments.turns:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(asyncio.run(measure(turns, Path(folder))).row())
        print(rows[-1] if len(rows) > 1 else f"{HEADER}\n{rows[-1]}", flush=True)
    if arguments.write:
        write_block(arguments.write, BLOCK, "\n".join([HEADER, *rows]))


if __name__ == "__main__":
    main()
