"""``holdfast resume``: have paused jobs go on."""

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
    """Have paused jobs go on.

    With --batch, the jobs of the batch that wait for their places begin again too. Exit code 1
    if each of several refuses.
    """
    named = Named(job, batch, where)
    # Behind the check: it takes longer than that.
    from runtime.client.wishes import resume

    act_on(
        named,
        target,
        store,
        resume,
        done="resumed",
        words="the job is asked to go on",
        json=json,
        hold="resume",
    )
