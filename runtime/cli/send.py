"""``holdfast send``: a message to a job."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime.cli.options import ANY_SERVER, Job, Json, Store
from runtime.cli.output import json_document, say
from runtime.server.target import Target


def command(
    job: Job,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The message.", show_default=False)],
    target: Target = ANY_SERVER,
    store: Store = None,
    json: Json = False,
) -> None:
    """Send a message to a running job.

    Its model reads it at the next turn.
    """
    import asyncio

    from runtime.cli.reach import with_job

    key = asyncio.run(with_job(job, target, store, lambda control, key: control.send(key, text)))
    if json:
        json_document({"job": str(key), "sent": True})
    else:
        say(f"{key}: the message is recorded; the job's model reads it at its next turn")
