"""``holdfast approvals``: the calls that wait for a person."""

from __future__ import annotations

import json as json_module
from typing import Any

import typer

from runtime.base.visible import escaped
from runtime.cli.exit_codes import DIFFERENCE
from runtime.cli.options import Json, Store
from runtime.cli.output import json_document, note, say


def command(store: Store = None, json: Json = False) -> None:
    """List the calls that wait for approval.

    It reads the archive alone. 'holdfast approve JOB@N.CALL' and 'holdfast reject JOB@N.CALL', with
    what stands before a call here, answer that call alone.

    Exit code 4: what some job asks cannot be read; the others are listed.
    """
    from runtime.archive.approvals import waiting_question
    from runtime.archive.catalog import all_jobs
    from runtime.archive.gaps import UNREADABLE
    from runtime.archive.job import JobArchive
    from runtime.cli.stores import archive_to_read

    objects = archive_to_read(store)
    rows = []
    unreadable = False
    for key in all_jobs(objects, None):
        try:
            waiting = waiting_question(JobArchive.of(objects, key))
        except UNREADABLE as error:
            note(f"what {key} asks cannot be read: {error} ('holdfast verify {key}' tells more)")
            unreadable = True
            continue
        if waiting is not None:
            rows.append(
                {"job": str(key), "turn": waiting.turn, "call": waiting.effect, **waiting.asked}
            )
    if json:
        json_document(rows)
    elif not rows:
        say("nothing waits for approval")
    else:
        _say(rows)
    if unreadable:
        raise typer.Exit(DIFFERENCE)


def _say(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        arguments = [json_module.dumps(value, ensure_ascii=False) for value in row["args"]]
        arguments += [
            f"{name}={json_module.dumps(value, ensure_ascii=False)}"
            for name, value in row["kwargs"].items()
        ]
        call = escaped(f"{row['tool']}({', '.join(arguments)})")
        say(f"{row['job']}@{row['turn']}.{row['call']}  {call}  {row['asked_at']}")
