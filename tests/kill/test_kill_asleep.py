"""``kill -9`` of everything while a job sleeps: it sleeps on, and what happened meanwhile wakes
it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from temporalio.client import WorkflowQueryFailedError
from temporalio.service import RPCError

from runtime.base.values import JobKey
from runtime.base.workflow_ids import job_workflow_id
from tests.kill.nursery import forked
from tests.kill.processes import wait_for
from tests.kill.scene import BATCH, JOB, Plot, Scene

pytestmark = [pytest.mark.kill, pytest.mark.server]

JOBS = f"""\
batch: {BATCH}
jobs:
  - id: {JOB}
    goal: Wait until the log changes.
    model: scripted/asleep.yaml
    workspace: ./workspace
    budget: {{wall: 2d}}
"""

SCRIPT = """\
- code: log = view('log.txt', freq='Sync')
- code: wait_for(log, timeout=86400)
- code: finish(log.text)
"""


def _has_turn(scene: Scene, turn: int) -> bool:
    archive = scene.archive()
    return any(archive.find_step(run, turn) for run in archive.runs())


def _asleep(scene: Scene) -> bool:
    """Whether the job's worker says that it sleeps."""

    async def ask() -> bool:
        client = await scene.client()
        handle = client.get_workflow_handle(job_workflow_id(JobKey(batch=BATCH, job=JOB)))
        try:
            return bool((await handle.query("progress")).get("phase") == "asleep")
        except (RPCError, WorkflowQueryFailedError):
            return False

    return asyncio.run(ask())


def test_a_sleep_survives_everything(tmp_path: Path) -> None:
    """Worker and server are killed twice; the log changes while nobody is there; the job wakes, and
    no turn ran twice.
    """
    with Scene.open(tmp_path, Plot(3), forked) as scene:
        (scene.path / "jobs.yaml").write_text(JOBS)
        (scene.path / "asleep.yaml").write_text(SCRIPT)
        for _ in range(2):
            process = scene.start()
            wait_for(lambda: _has_turn(scene, 2), "turn 2 is archived", alive=process)
            wait_for(lambda: _asleep(scene), "the job sleeps", alive=process)
            scene.kill_server()
            scene.kill_run()
            scene.nothing_left()
        (scene.path / "workspace" / "log.txt").write_text("line 1\nline 2\n")
        scene.start()
        job = scene.finish()
        assert (job["status"], job["turns"]) == ("succeeded", 3)
        archive = scene.archive()
        (run,) = archive.runs()
        assert archive.end(run).result == "line 1\nline 2"
        assert [step.turn for step in archive.steps(run)] == [1, 2, 3]
        assert archive.find_step(run, 3).interim.woken.endswith(" s; woken by a change of log")
        scene.replay()
