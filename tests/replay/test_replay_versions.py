"""A running job stays on the code that it began on, and takes up another at a checkpoint."""

from __future__ import annotations

from datetime import timedelta

import pytest
from temporalio.client import WorkflowHistory
from temporalio.common import WorkerDeploymentVersion

from runtime.job import checkpoint
from runtime.job.stops import JobStatus
from runtime.worker.worker import make_worker
from tests.deployments import make_current
from tests.replay.replays import held, turn_of
from tests.replay.timelines import archive_of, sound
from tests.workflow.stage import Stage, replayer

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

BUSY = "n = 0\nwhile n < 400_000:\n    n += 1"


def _builds(history: WorkflowHistory) -> set[str]:
    """The versions on which a run's workflow tasks were completed."""
    done = [event.workflow_task_completed_event_attributes for event in history.events]
    return {one.deployment_version.build_id for one in done if one.deployment_version.build_id}


async def test_a_job_changes_its_release_at_a_checkpoint(stage: Stage) -> None:
    """The run that is open when another version becomes the current one ends on its own; the next
    begins on the other.
    """
    old, new = (WorkerDeploymentVersion(stage.batch, build) for build in ("old", "new"))
    queue = f"{stage.queue}-versioned"
    async with make_worker(stage.client, stage.store, task_queue=queue, deployment=old):
        await make_current(stage.client, old)
        stage.queue = queue
        model, gate = held(stage, [*[BUSY] * 30, "finish(n)"], 2)
        spec = stage.spec(model, id="job")
        handle = await stage.start(spec, timedelta(seconds=2))
        archive = archive_of(stage, "job")
        await turn_of(archive, 1)
        async with make_worker(stage.client, stage.store, task_queue=queue, deployment=new):
            await make_current(stage.client, new)
            gate.touch()
            outcome = await handle.result()
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, 31)
    runs = archive.runs()
    assert len(runs) > 1
    histories = [
        await stage.client.get_workflow_handle(handle.id, run_id=run).fetch_history()
        for run in (runs[0], runs[-1])
    ]
    assert [_builds(history) for history in histories] == [{"old"}, {"new"}]
    assert sound(archive)


async def test_another_interpreter_does_not_take_over_in_mid_run(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run's history names the interpreter that it began with; a worker with another one fails its
    task, and says so.
    """
    await stage.run(["x = 1", "finish(x)"])
    history = await stage.history()
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "INTERPRETER", "monty 99")
        with pytest.raises(
            Exception, match=r"began with monty [\d.]+ supplied \d+ and this worker has monty 99"
        ):
            await replayer().replay_workflow(history)
