"""``holdfast fork``: another job from the same point."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime.base.errors import InputError
from runtime.cli.chosen import Run
from runtime.cli.completion import job_names
from runtime.cli.logs import log_in_lines, own_terminal
from runtime.cli.options import ANY_SERVER, Json, Store
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
    job: Annotated[
        str,
        typer.Argument(
            metavar="JOB@N",
            help="A job and the statement before which the fork begins.",
            show_default=False,
            autocompletion=job_names,
        ),
    ],
    name: Annotated[
        str,
        typer.Option(
            "--as", metavar="ID", help="The new job's id, in the same batch.", show_default=False
        ),
    ],
    count: Annotated[
        int,
        typer.Option(
            "--count", metavar="K", min=1, max=1000, help="K forks; of several: ID-1 to ID-K."
        ),
    ] = 1,
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
    """Start another job from statement N of JOB.

    It begins before N, out of the archive. JOB itself is left as it is, running or not, also when
    Temporal has forgotten it. The options are those of 'replay', and so are the exit codes; of
    several forks the worst counts. The same command again, after a kill, follows the fork that is
    there.
    """
    import asyncio

    from activities.record import RunName
    from runtime.archive.catalog import find_job
    from runtime.archive.job import JobArchive
    from runtime.cli.following import Started, followed
    from runtime.cli.job_turn import parse_job_turn
    from runtime.cli.showing import chosen_run
    from runtime.cli.stores import archive_of
    from runtime.client.forks import ForkPoint, forks
    from runtime.server.connection import Connection

    asked = parse_job_turn(job)
    if asked.turn is None or asked.turn < 1:
        raise InputError(f"{job!r} names no statement: JOB@N, as in 'nightly/licences@12'")
    names, turn = _names(name, count), asked.turn
    with own_terminal():
        log_in_lines()
        objects = archive_of(store)
        key = find_job(objects, asked.job)
        archive = JobArchive.of(objects, key)
        source = RunName(batch=key.batch, job=key.job, run=chosen_run(archive, str(key), run))
        wanted = Wanted(mode, frozen, then, edit, message, model, budget)
        # An order for each: one order is claimed by one run.
        orders = {one: order_of(wanted, archive, source, turn) for one in names}
        check_order(orders[names[0]], archive, detach=detach)

        async def begin(connection: Connection) -> list[Started]:
            made = await forks(connection.client, objects, ForkPoint(source, turn), orders)
            return [Started(*one) for one in zip(made, orders.values(), strict=True)]

        # No file names a fork: 'run' of that of its job may have nothing to work on.
        further = "this command again, 'holdfast worker'"
        told = followed(target, objects, begin, detach=detach, json=json, further=further)
        raise typer.Exit(asyncio.run(told))


def _names(name: str, count: int) -> list[str]:
    """The ids of the forks.

    Raises:
        InputError: if they can be no job's.
    """
    from runtime.jobsfile.written.names import NAME_RULE, is_name

    names = [name] if count == 1 else [f"{name}-{number}" for number in range(1, count + 1)]
    # The longest of them: if that is a name, all are.
    if not is_name(names[-1]):
        raise InputError(f"--as {name!r}: expected a name ({NAME_RULE})")
    return names
