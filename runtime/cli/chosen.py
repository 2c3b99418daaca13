"""The turn that a command is about, from ``JOB@N`` as it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from runtime.cli.completion import job_names

if TYPE_CHECKING:
    from runtime.archive.stores import ObjectStore
    from runtime.cli.showing import ShownTurn

JobAtTurn = Annotated[
    str,
    typer.Argument(
        metavar="JOB@N",
        help=(
            "A job (BATCH/ID, a unique prefix of the id, or 'last') and a turn; without '@N', its"
            " newest turn."
        ),
        show_default=False,
        autocompletion=job_names,
    ),
]
Run = Annotated[
    str | None, typer.Option("--run", help="A run of the job; the newest one by default.")
]


def chosen_turn(objects: ObjectStore, text: str, run: str | None) -> ShownTurn:
    """The turn that ``text`` names.

    Raises:
        InputError: if it is no JOB@N.
        NotFound: if there is no such job, or it has no turn.
    """
    from runtime.archive.job import JobArchive
    from runtime.cli.deleted import job_to_read
    from runtime.cli.job_turn import parse_job_turn
    from runtime.cli.showing import ShownTurn

    wanted = parse_job_turn(text)
    name = job_to_read(objects, wanted.job)
    return ShownTurn(JobArchive.of(objects, name), str(name), run, wanted.turn)
