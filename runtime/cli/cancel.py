"""``holdfast cancel``: end a job for good."""

from __future__ import annotations

from runtime.cli.options import ANY_SERVER, Job, Json, Store
from runtime.cli.output import json_document, say
from runtime.server.target import Target


def command(
    job: Job,
    target: Target = ANY_SERVER,
    store: Store = None,
    json: Json = False,
) -> None:
    """Cancel a job.

    A model call in progress is broken off, and the job ends as cancelled: at once if a worker runs,
    else when the batch is resumed. So does a job that waits for its place in a batch that runs;
    name it in full, as BATCH/ID. Only 'holdfast run --rerun-failed' starts it anew.
    """
    import asyncio

    from runtime.cli.reach import with_job

    key = asyncio.run(with_job(job, target, store, lambda control, key: control.cancel(key)))
    if json:
        json_document({"job": str(key), "cancelled": True})
    else:
        say(f"{key}: the job is asked to stop; it ends as cancelled as soon as a worker has it")
