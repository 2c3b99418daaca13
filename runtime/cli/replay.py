"""``holdfast replay``: take a job back to a statement, and run on from there."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime.cli.chosen import Run
from runtime.cli.logs import log_in_lines, own_terminal
from runtime.cli.options import ANY_SERVER, Job, Json, Store
from runtime.cli.replay_options import (
    BudgetOption,
    Detach,
    Edit,
    Frozen,
    Message,
    Mode,
    Model,
    ModeOption,
    Then,
    ThenOption,
    Wanted,
    check_order,
    order_of,
)
from runtime.server.target import Target


def command(
    job: Job,
    start: Annotated[
        int,
        typer.Option(
            "--from", metavar="N", min=1, help="The statement to go back to.", show_default=False
        ),
    ],
    mode: ModeOption = Mode.RERUN,
    frozen: Frozen = False,
    then: ThenOption = Then.STOP,
    edit: Edit = None,
    message: Message = None,
    model: Model = None,
    budget: BudgetOption = None,
    run: Run = None,
    detach: Detach = False,
    target: Target = ANY_SERVER,
    store: Store = None,
    json: Json = False,
) -> None:
    """Take a job back to statement N and run on.

    Temporal resets it to before N's model call. Nothing before N is called or executed again. The
    job's open run ends, if it has one; its steps stay in the archive, as do those of every other
    run ('log JOB --run R', 'log JOB --graph'). Messages that came after N are delivered again.

    Exit code 0: the job succeeded, or its record was executed to the end with no difference; 4:
    there were divergences ('divergences JOB' tells them); else as for 'run'.
    """
    wanted = Wanted(mode, frozen, then, edit, message, model, budget)
    with own_terminal():
        log_in_lines()
        raise typer.Exit(
            _replayed(job, start, run, wanted, target, store, detach=detach, json=json)
        )


def _replayed(
    job: str,
    start: int,
    run: str | None,
    wanted: Wanted,
    target: Target,
    store: str | None,
    *,
    detach: bool,
    json: bool,
) -> int:
    """Order the replay and, unless ``detach``, follow it to its end; the exit code."""
    import asyncio

    from activities.record import RunName
    from runtime.archive.catalog import find_job
    from runtime.archive.job import JobArchive
    from runtime.cli.following import Started, followed
    from runtime.cli.output import note
    from runtime.cli.showing import chosen_run
    from runtime.cli.stores import archive_of
    from runtime.client.control import Control
    from runtime.client.resets import reset
    from runtime.client.waiting import waits
    from runtime.server.connection import Connection

    objects = archive_of(store)
    name = find_job(objects, job)
    archive = JobArchive.of(objects, name)
    timeline = chosen_run(archive, str(name), run)
    order = order_of(wanted, archive, RunName(batch=name.batch, job=name.job, run=timeline), start)
    check_order(order, archive, detach=detach)

    async def begin(connection: Connection) -> list[Started]:
        # Asked before: then it has a run, by which its batch passes it over.
        waiting = await waits(Control(connection.client, objects), name)
        made = await reset(connection.client, objects, name, order)
        if waiting:
            note(
                f"{name} waits in its batch to begin anew, and does not where its place comes while"
                f" this run lasts: 'holdfast retry {name}' asks for it again"
            )
        return [Started(made, order)]

    further = "'holdfast run' of its file, 'holdfast worker'"
    told = followed(target, objects, begin, detach=detach, json=json, further=further)
    return asyncio.run(told)
