"""What replays are checked by: a timeline of a job as its archive tells it, and the histories of
all its runs.
"""

from __future__ import annotations

from typing import Any

from temporalio.client import Client

from runtime.archive.forms import Step
from runtime.archive.job import JobArchive
from runtime.archive.verify import damage, verify_job
from runtime.base.values import JobKey
from runtime.base.workflow_ids import job_workflow_id
from tests.timeless import segment_without_times, without_times
from tests.workflow.stage import Stage, replayer


def archive_of(stage: Stage, job: str) -> JobArchive:
    """The archive of one of the stage's jobs."""
    return JobArchive(stage.store, stage.batch, job)


def timeline(archive: JobArchive, run: str) -> list[dict[str, Any]]:
    """Each turn of a run: what was shown, said and done, without times and addresses."""
    return [
        {
            "turn": step.turn,
            "reply": step.reply.model_dump(mode="json"),
            **came_to(step),
            "nodes": [record for record in step.nodes if record["obj_id"] in step.changed],
            "prompt": [
                segment_without_times(segment) for segment in archive.turn_layout(run, step.turn)
            ],
        }
        for step in archive.steps(run)
    ]


def came_to(step: Step) -> dict[str, Any]:
    """What a step's statement came to, without times: a timeline's part that needs no prompt to be
    read.
    """
    return {
        "execution": without_times(step.execution),
        "nodes_digest": step.nodes_digest,
        "events": step.events,
    }


async def replay_runs(client: Client, stage: Stage, job: str, *, every: int = 1) -> int:
    """Replay the history of each of a job's runs (or ``every`` so many), as a worker without a
    cache would; returns how many there are.
    """
    runs = archive_of(stage, job).runs()
    for run in runs[::every]:
        handle = client.get_workflow_handle(
            job_workflow_id(JobKey(batch=stage.batch, job=job)), run_id=run
        )
        await replayer().replay_workflow(await handle.fetch_history())
    return len(runs)


def sound(archive: JobArchive) -> bool:
    """Whether every object of the archive is what was written."""
    return damage(verify_job(archive)) == []
