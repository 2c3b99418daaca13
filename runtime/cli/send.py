"""``holdfast send``: a message to jobs."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime.base.errors import InputError
from runtime.cli.options import ANY_SERVER, Json, Store
from runtime.cli.several import Batch, Named, Where, act_on
from runtime.server.target import Target


def command(
    job_and_text: Annotated[
        list[str],
        typer.Argument(
            metavar="[JOB] TEXT",
            help="BATCH/ID, any unique prefix of the id, or 'last'; and the message.",
            show_default=False,
        ),
    ],
    target: Target = ANY_SERVER,
    store: Store = None,
    batch: Batch = None,
    where: Where = None,
    json: Json = False,
) -> None:
    """Send a message to a running job, or to several.

    Its model reads it at the next turn; or later, where that turn has no room for it beside the
    messages that came before. Exit code 1 if each of several refuses.
    """
    several = batch is not None or where is not None
    if len(job_and_text) != (1 if several else 2):
        raise InputError(
            "expected the message alone, since --batch or --where name the jobs"
            if several
            else "expected a job and a message"
        )
    named = Named(None if several else job_and_text[0], batch, where)
    # Behind the check: it takes longer than that.
    from runtime.client.wishes import send

    act_on(
        named,
        target,
        store,
        lambda control, key: send(control, key, job_and_text[-1]),
        done="sent",
        words="the message is recorded; the job's model reads it at its next turn",
        json=json,
    )
