"""A busy machine: jobs beside processes that compute all the time, and a worker whose lock of the
interpreter is held.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from stage import Stage, events_of, overdue

from runtime.archive.job import JobArchive
from runtime.job.stops import JobStatus
from tests.eventually import eventually

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

LOOPS = os.cpu_count() or 2
"""Processes that compute beside the job: its worker gets a fraction of a processor."""

STATEMENTS = [
    "a = view('a.py', tokens=500)\ng = group(a, tokens=200).Run(freq='Sync')",
    "n = 0\nwhile n < 200_000: n += 1\nprint(n)",
    "kept = list(range(100_000))\nprint(len(kept))",
    "for k in range(250): a.SetTokens(k + 1)\nprint(a.tokens, open('a.py').read())",
    "print(sorted([str(k) for k in range(20_000)])[-1])",
    "finish([n, len(kept), a.tokens])",
]


@contextmanager
def starved() -> Iterator[None]:
    """Every processor has more to do than it can."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def attempts_of(archive: JobArchive, run: str, turns: int) -> list[int]:
    """How often each turn's model was called."""
    return [len(archive.attempts(run, turn)) for turn in range(1, turns + 1)]


@pytest.mark.parametrize("cached_jobs", [100, 0])
async def test_a_busy_machine_changes_nothing(stage: Stage, cached_jobs: int) -> None:
    """No innocent statement ends by a limit, no call is made twice, and no workflow task fails,
    with a cache or without.
    """
    (stage.workspace / "a.py").write_text("def one():\n    return 1\n")
    # A worker of its own: the stage's would take half of the tasks.
    stage.queue += "-busy"
    with starved():
        async with stage.open(cached_jobs=cached_jobs):
            outcome, archive = await stage.run(STATEMENTS)
    assert outcome.status is JobStatus.SUCCEEDED
    end = archive.end(outcome.run)
    assert end is not None
    assert end.result == [200_000, 100_000, 250]
    executions = [
        step.execution for step in archive.steps(outcome.run) if step.execution is not None
    ]
    assert [execution.get("status") for execution in executions] == ["ok"] * 5
    assert [execution.get("unchecked") for execution in executions] == [None] * 5
    assert attempts_of(archive, outcome.run, 6) == [1] * 6
    history = await stage.history()
    assert events_of(history, "WORKFLOW_TASK_FAILED") == []
    assert overdue(history) == []


async def test_a_slow_worker_is_not_taken_for_a_dead_one(stage: Stage) -> None:
    """Nothing of it runs for longer than the old limit of heartbeats, and its calls are not made
    again.
    """
    spec = stage.spec([{"code": "n = 1", "delay": 2.0}, "finish(n)"])
    handle = await stage.start(spec)
    archive = stage.archive(spec)
    await eventually(
        lambda: any(archive.attempts(run, 1) for run in archive.runs()), "the model is called"
    )
    # PyDLL keeps the lock while the C function sleeps, as a native call that computes does.
    ctypes.PyDLL(None).sleep(6)
    outcome = await handle.result()
    assert outcome.status is JobStatus.SUCCEEDED
    assert attempts_of(archive, outcome.run, 2) == [1, 1]
    assert events_of(await stage.history(), "WORKFLOW_TASK_FAILED") == []
