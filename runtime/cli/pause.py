"""``holdfast pause``: stop jobs for a while."""

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
    """Pause jobs until they are resumed.

    None of their turns begins until 'holdfast resume'. A model call or a statement that runs goes
    on to its end. A job that is paused holds no worker, and its wall budget does not count the
    time; a deadline comes nearer all the same. With --batch, no other job of the batch begins
    either. Exit code 1 if each of several refuses.
    """
    named = Named(job, batch, where)
    # Behind the check: it takes longer than that.
    from runtime.client.wishes import pause

    act_on(
        named,
        target,
        store,
        pause,
        done="paused",
        words="the job is asked to pause; its turn, if one runs, comes to its end",
        json=json,
        hold="pause",
    )
