"""``holdfast archive hold``: jobs that may not be deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from runtime.base.errors import InputError
from runtime.cli.archive.deleting import By
from runtime.cli.caller import caller
from runtime.cli.exit_codes import DIFFERENCE
from runtime.cli.options import Json, Store
from runtime.cli.output import json_document, note, say
from runtime.cli.several import AnyJob

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime.archive.lifecycle.holds import Hold
    from runtime.base.values import JobKey


def command(
    job: AnyJob = None,
    reason: Annotated[
        str | None,
        typer.Option("--reason", metavar="TEXT", help="Why; kept with it.", show_default=False),
    ] = None,
    by: By = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Put a job under legal hold, or, without JOB, list those that are.

    'archive delete' and 'archive prune' refuse a job that is held, until 'archive release'. Who
    held and released it stays to be read in the archive. (A bucket's own lock keeps objects from
    all other programs too: docs/deploying.md.)

    Exit code 4: whether some job is held cannot be read; the others are listed.
    """
    from runtime.archive import keys
    from runtime.archive.lifecycle.deletion import now
    from runtime.archive.lifecycle.holds import Hold, held_jobs, hold_of, write_hold
    from runtime.cli.deleted import job_to_read
    from runtime.cli.stores import archive_of, archive_to_read

    if job is None:
        unreadable: list[str] = []
        held = held_jobs(archive_to_read(store), unreadable)
        _tell(held, json)
        if not (held or unreadable or json):
            say("no job is held")
        for problem in unreadable:
            note(f"whether a job is held cannot be read: {problem} ('holdfast verify' tells more)")
        if unreadable:
            raise typer.Exit(DIFFERENCE)
        return
    if reason is None or not reason.strip():
        raise InputError("--reason: say why the job is held; it is kept with it")
    objects = archive_of(store)
    # So that it is told afterwards where a deletion has begun, which a hold came too late for.
    name = job_to_read(objects, job)
    prefix = keys.job_prefix(name.batch, name.job)
    # A second hold changes nothing: who held it first, and why, stays to be read.
    if (known := hold_of(objects, prefix)) is None:
        known = Hold(by=by or caller(), at=now(), reason=reason.strip())
        write_hold(objects, prefix, known)
    _tell({name: known}, json)


def _tell(held: Mapping[JobKey, Hold], json: bool) -> None:
    if json:
        json_document(
            [{"job": str(key), **one.model_dump(mode="json")} for key, one in held.items()]
        )
        return
    for key, one in held.items():
        say(f"{key}: {one.told}")
