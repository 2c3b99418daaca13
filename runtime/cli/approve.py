"""``holdfast approve``: let a job make a call."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime.cli.options import ANY_SERVER, Asking, Json, Store
from runtime.cli.output import json_document, say
from runtime.server.target import Target


def command(
    job: Asking,
    edit: Annotated[
        bool, typer.Option("--edit", help="Change the call's arguments first, in $EDITOR, as JSON.")
    ] = False,
    target: Target = ANY_SERVER,
    store: Store = None,
    json: Json = False,
) -> None:
    """Approve the call that a job waits to make.

    The job goes on as soon as a worker has it. Who approved, and when, is archived.
    """
    from runtime.cli.deciding import decide

    told = decide(job, target, store, approved=True, edit=edit)
    if json:
        json_document(told)
    else:
        changed = ", with other arguments" if told["edited"] else ""
        say(f"{told['job']}@{told['turn']}.{told['call']}: {told['tool']} is approved{changed}")
