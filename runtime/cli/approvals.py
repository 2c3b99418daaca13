"""``holdfast approvals``: the calls that wait for a person."""

from __future__ import annotations

import json as json_module
from typing import TYPE_CHECKING, Any

import typer

from runtime.base.visible import escaped
from runtime.cli.exit_codes import DIFFERENCE
from runtime.cli.options import ANY_SERVER, Json, Store
from runtime.cli.output import json_document, note, say
from runtime.server.target import Target

if TYPE_CHECKING:
    from runtime.archive.stores import ObjectStore
    from runtime.base.values import JobKey


def command(target: Target = ANY_SERVER, store: Store = None, json: Json = False) -> None:
    """List the calls that wait for approval.

    It reads the archive; where the server is in reach, jobs are left out that were ended in
    Temporal itself, whose end the archive does not have. 'holdfast approve JOB@N.CALL' and
    'holdfast reject JOB@N.CALL', with what stands before a call here, answer that call alone.

    Exit code 4: what some job asks cannot be read; the others are listed.
    """
    from runtime.archive.approvals import waiting_question
    from runtime.archive.catalog import all_jobs
    from runtime.archive.gaps import UNREADABLE
    from runtime.archive.job import JobArchive
    from runtime.cli.stores import archive_to_read

    objects = archive_to_read(store)
    rows: dict[JobKey, dict[str, Any]] = {}
    unreadable = False
    for key in all_jobs(objects, None):
        try:
            waiting = waiting_question(JobArchive.of(objects, key))
        except UNREADABLE as error:
            note(f"what {key} asks cannot be read: {error} ('holdfast verify {key}' tells more)")
            unreadable = True
            continue
        if waiting is not None:
            row = {"job": str(key), "turn": waiting.turn, "call": waiting.effect}
            rows[key] = {**row, **waiting.asked}
    if rows:
        # Loaded here: where nothing waits, no server is asked.
        import asyncio

        asyncio.run(_leave_out_ended(rows, objects, target))
    if json:
        json_document(list(rows.values()))
    elif not rows:
        say("nothing waits for approval")
    else:
        _say(list(rows.values()))
    if unreadable:
        raise typer.Exit(DIFFERENCE)


async def _leave_out_ended(
    rows: dict[JobKey, dict[str, Any]], objects: ObjectStore, target: Target
) -> None:
    """Leave out the jobs of which Temporal says that they have ended."""
    from runtime.base.errors import ServerError
    from runtime.cli.reach import control_in_reach, note_unknown
    from runtime.client.statuses import ended_of

    try:
        async with control_in_reach(target, objects) as control:
            for key in await ended_of(control, list(rows)) if control is not None else ():
                del rows[key]
    except ServerError as error:
        note_unknown(error)


def _say(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        arguments = [json_module.dumps(value, ensure_ascii=False) for value in row["args"]]
        arguments += [
            f"{name}={json_module.dumps(value, ensure_ascii=False)}"
            for name, value in row["kwargs"].items()
        ]
        call = escaped(f"{row['tool']}({', '.join(arguments)})")
        say(f"{row['job']}@{row['turn']}.{row['call']}  {call}  {row['asked_at']}")
