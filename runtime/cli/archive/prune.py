"""``holdfast archive prune``: delete what rules of retention let go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from runtime.base.errors import InputError
from runtime.base.plurals import counted
from runtime.cli.archive.deleting import (
    By,
    carry_out,
    refused_of,
    server_in_reach,
    told,
    wish_of,
)
from runtime.cli.completion import batch_names
from runtime.cli.options import ANY_SERVER, Json, Store
from runtime.cli.output import json_document, note, say
from runtime.job.stops import JobStatus
from runtime.server.target import Target

if TYPE_CHECKING:
    from runtime.archive.lifecycle.retention import EndedJob, Rules
    from runtime.archive.lifecycle.tombstones import Tombstone
    from runtime.base.values import JobKey


def command(
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            metavar="AGE",
            help="Jobs that ended so long ago, such as 90d.",
            show_default=False,
        ),
    ] = None,
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            metavar="STATUS[,...]",
            help="Jobs that ended so, such as failed,cancelled.",
            show_default=False,
        ),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep",
            metavar="N",
            min=0,
            help="Keep the N jobs of each batch that ended last.",
            show_default=False,
        ),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(
            "--batch",
            metavar="BATCH",
            help="Jobs of this batch alone.",
            show_default=False,
            autocompletion=batch_names,
        ),
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option(
            "--reason",
            metavar="TEXT",
            help="Why; kept with it. Default: the rules.",
            show_default=False,
        ),
    ] = None,
    by: By = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Delete. Without it, what would go is told.")
    ] = False,
    target: Target = ANY_SERVER,
    store: Store = None,
    json: Json = False,
) -> None:
    """Delete jobs that have ended by rules of retention, all of which must hold.

    It tells what would go, and deletes with --yes alone, as 'archive delete' does. What that
    refuses stays and is told by name: jobs that are held, locked by their bucket, or run again,
    those whose batch runs, and those from which others that stay were forked, or may have been. A
    deletion that was broken off, this command's or another's, goes on, whatever the rules are.
    """
    import asyncio
    from datetime import UTC, datetime

    from runtime.archive.catalog import all_jobs
    from runtime.archive.lifecycle.deletion import broken_off
    from runtime.archive.lifecycle.retention import ended_jobs
    from runtime.cli.stores import archive_of

    rules = _rules(older_than, status, keep)
    objects = archive_of(store)
    words = reason if reason is not None else _words(older_than, status, keep)
    wish = wish_of(by, words)
    jobs = list(all_jobs(objects, batch))
    if batch is not None and not jobs:
        # No error: whoever has it done every night begins before the batch does.
        note(f"the archive has no job of batch {batch}")
    begun = {one.job: one for one in broken_off(objects, jobs)}
    ended = ended_jobs(objects, [job for job in jobs if job not in begun])
    going = rules.let_go(ended, datetime.now(UTC))

    async def refused() -> dict[JobKey, str]:
        names = [*begun, *(one.job for one in going)]
        async with server_in_reach(target) as client:
            return await refused_of(objects, client, names, unfinished=False)

    stay = asyncio.run(refused()) if begun or going else {}
    begun = {job: one for job, one in begun.items() if job not in stay}
    going = [one for one in going if one.job not in stay]
    names = sorted([*begun, *(one.job for one in going)])
    if not json:
        for job, why in stay.items():
            say(f"{job}: stays: {why}")
        if not yes:
            _tell_what_would_go(list(begun.values()), going)
    # Also where no job goes: a deletion may have been broken off before what its jobs had alone.
    done = carry_out(objects, names, wish, json=json) if yes else None
    if json:
        would = [str(name) for name in names] if not yes else []
        empty = {"deleted": [], "shared": 0, "shared_waits_for": []}
        json_document({**(done or empty), "would_delete": would, "refused": told(stay)})


def _tell_what_would_go(begun: list[Tombstone], ended: list[EndedJob]) -> None:
    for half in begun:
        say(f"{half.job}: would go: it {half.told}, which was broken off")
    for one in ended:
        say(
            f"{one.job}: would go: {one.status}, ended {one.ended_at.isoformat(timespec='seconds')}"
        )
    say(f"{counted(len(begun) + len(ended), 'job')} would be deleted: --yes deletes")


def _rules(older_than: str | None, status: str | None, keep: int | None) -> Rules:
    from datetime import timedelta

    from runtime.archive.lifecycle.retention import Rules
    from runtime.base.durations import parse_duration

    try:
        age = None if older_than is None else timedelta(seconds=parse_duration(older_than))
    except ValueError as error:
        raise InputError(
            f"--older-than {older_than}: expected an age such as 90d or 12h ({error})"
        ) from None
    statuses = frozenset(filter(None, (one.strip() for one in (status or "").split(","))))
    if unknown := sorted(statuses - ENDED):
        raise InputError(
            f"--status {', '.join(unknown)}: expected some of {', '.join(sorted(ENDED))}"
        )
    return Rules(age, statuses, keep)


ENDED = frozenset(str(one) for one in JobStatus if one is not JobStatus.RUNNING)


def _words(older_than: str | None, status: str | None, keep: int | None) -> str:
    options = {"--older-than": older_than, "--status": status, "--keep": keep}
    rules = (f"{name} {value}" for name, value in options.items() if value is not None)
    return f"archive prune {' '.join(rules)}"
