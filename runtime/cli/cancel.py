"""``holdfast cancel``: end jobs for good."""

from __future__ import annotations

from runtime.cli.options import ANY_SERVER, Json, Store
from runtime.cli.several import AnyJob, Batch, Named, Where, act_on
from runtime.server.target import Target


def command(
    job: AnyJob = None,
    target: Target = ANY_SERVER,
    store: Store = None,
    batch: Batch = None,
    where: Where = None,
    json: Json = False,
) -> None:
    """Cancel jobs.

    A model call in progress is broken off, and the job ends as cancelled: within seconds if a
    worker runs, else when the batch is resumed. So does a job that waits for its place in a batch
    that runs; name it in full, as BATCH/ID. Only 'holdfast retry' or 'run --rerun-failed' starts it
    anew. Exit code 1 if each of several refuses.
    """
    named = Named(job, batch, where)
    # Behind the check: it takes longer than that.
    from runtime.client.wishes import cancel

    act_on(
        named,
        target,
        store,
        cancel,
        done="cancelled",
        words="the job is asked to stop; it ends as cancelled as soon as a worker has it",
        json=json,
        hold="withdraw_all",
    )
