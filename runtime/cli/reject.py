"""``holdfast reject``: refuse a job a call."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime.cli.options import ANY_SERVER, Asking, Json, Store
from runtime.cli.output import json_document, say
from runtime.server.target import Target


def command(
    job: Asking,
    reason: Annotated[
        str,
        typer.Option("--reason", metavar="TEXT", help="Why: the job's statement is told."),
    ] = "",
    target: Target = ANY_SERVER,
    store: Store = None,
    json: Json = False,
) -> None:
    """Reject the call that a job waits to make.

    Its statement gets a PermissionError with the reason, and the job goes on.
    """
    from runtime.cli.deciding import decide

    told = decide(job, target, store, approved=False, reason=reason)
    if json:
        json_document(told)
    else:
        say(f"{told['job']}@{told['turn']}.{told['call']}: {told['tool']} is rejected")
