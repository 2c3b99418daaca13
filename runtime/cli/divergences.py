"""``holdfast divergences``: where a replay differs from its record."""

from __future__ import annotations

import typer

from runtime.base.plurals import counted
from runtime.cli.chosen import Run
from runtime.cli.exit_codes import DIFFERENCE
from runtime.cli.options import Job, Json, Store
from runtime.cli.output import json_document, say


def command(job: Job, run: Run = None, store: Store = None, json: Json = False) -> None:
    """List where a replay differs from its record.

    The earliest comes first, and causes before effects; of texts the lines that differ are shown,
    '-' as recorded, '+' as it is now. It reads the archive alone. Exit code 4 if there is any.
    """
    from runtime.archive.divergences import replay_of
    from runtime.archive.job import JobArchive
    from runtime.cli.deleted import job_to_read
    from runtime.cli.differences import explained_in, lines_of
    from runtime.cli.showing import chosen_run, tell_newest
    from runtime.cli.stores import archive_to_read

    objects = archive_to_read(store)
    name = job_to_read(objects, job)
    archive = JobArchive.of(objects, name)
    chosen = chosen_run(archive, str(name), run)
    if run is None:
        tell_newest(archive, str(name))
    replay, explained = replay_of(archive, chosen), explained_in(archive, chosen)
    if json:
        about = {
            "job": str(name),
            "run": chosen,
            "replay": replay.model_dump(mode="json") if replay else None,
        }
        json_document({**about, "divergences": [one.document() for one in explained]})
    elif not explained:
        say(
            f"{name}  run {chosen}: no divergence" if replay else f"{name}  run {chosen}: no replay"
        )
    else:
        turns = {one.divergence.turn for one in explained}
        say(
            f"{name}  run {chosen}: {counted(len(explained), 'divergence')} of"
            f" {counted(len(turns), 'statement')}"
        )
        for number, one in enumerate(explained):
            first, *more = lines_of(one)
            say(f"{'first: ' if number == 0 else '       '}{first}")
            for line in more:
                say(f"       {line}")
    if explained:
        raise typer.Exit(DIFFERENCE)
