"""``holdfast init``: prepare a namespace of a Temporal server."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime.base.errors import InputError
from runtime.cli.options import ANY_SERVER, Json
from runtime.cli.output import json_document, say
from runtime.server.target import Target


def command(
    target: Target = ANY_SERVER,
    retention: Annotated[
        str | None,
        typer.Option(
            "--retention",
            metavar="DURATION",
            help=(
                "How long histories of closed runs are kept, such as 30d. Default: 30d for a new"
                " namespace, else as it is."
            ),
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Prepare a namespace of a Temporal server.

    It makes the namespace if there is none, and registers the search attributes by which jobs are
    found. What is there already stays; the command can be given again and then does nothing. It
    tells whether the server keeps the rates of task queues that 'limits:' of a jobs file needs. The
    embedded server prepares itself. Exit code 1 if the server refused something, which is told.
    """
    import asyncio
    from datetime import timedelta

    from runtime.base.durations import parse_duration
    from runtime.server.connection import connect_to_prepare
    from runtime.server.preparing import Done, Setting, prepare

    try:
        kept = timedelta(seconds=parse_duration(retention)) if retention is not None else None
    except ValueError:
        raise InputError(f"--retention {retention!r}: expected a duration, such as 30d") from None
    if kept is not None and kept < timedelta(days=1):
        raise InputError(f"--retention {retention}: Temporal keeps histories for a day at least")

    async def run() -> list[Setting]:
        async with connect_to_prepare(target) as connection:
            return await prepare(connection.client, kept)

    settings = asyncio.run(run())
    if json:
        json_document(
            [{"name": one.name, "done": one.done.value, "about": one.about} for one in settings]
        )
    else:
        for one in settings:
            say(f"{one.done.value:<8} {one.name}: {one.about}")
    raise typer.Exit(1 if any(one.done is Done.REFUSED for one in settings) else 0)
