"""``holdfast errors``: why jobs of a batch failed, by cause."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.base.errors import NotFound
from runtime.base.plurals import counted
from runtime.cli.completion import batch_names
from runtime.cli.options import Json, Store
from runtime.cli.output import json_document, note, say, say_all
from runtime.cli.text import one_line

if TYPE_CHECKING:
    from runtime.archive.failure_groups import Failing, FailureGroup
    from runtime.archive.stores import ObjectStore
    from runtime.base.values import JobKey


def command(
    batch: Annotated[
        str,
        typer.Argument(
            metavar="BATCH|JOB",
            help="A batch, or one job.",
            show_default=False,
            autocompletion=batch_names,
        ),
    ],
    calls: Annotated[
        bool,
        typer.Option(
            "--calls",
            help="Group the attempts at model calls that failed, in place of how jobs ended.",
        ),
    ] = False,
    store: Store = None,
    json: Json = False,
) -> None:
    """Show why jobs failed, grouped by cause.

    A cause is what reasons have in common, without numbers, paths, ids and digests. Each has its
    count, one job of it with the turn and its reason in full, and the command to look at that. It
    reads the archive alone.
    """
    from runtime.archive.failure_groups import UNTOLD, grouped
    from runtime.cli.stores import archive_to_read

    objects = archive_to_read(store)
    names = _jobs(objects, batch)
    unreadable: list[str] = []
    groups = grouped(_failures(objects, names, calls, unreadable))
    for problem in unreadable:
        note(f"whether on_finish was told of an end cannot be read: {problem}")
    if json:
        json_document([_document(group, store) for group in groups])
        return
    say_all(line for group in groups for line in _lines(group, calls, store))
    # That nobody heard of an end is no cause of one.
    untold = sum(group.statuses.get(UNTOLD, 0) for group in groups)
    failed = sum(group.count for group in groups) - untold
    causes = counted(sum(group.statuses.keys() != {UNTOLD} for group in groups), "cause")
    of = counted(len(names), "job")
    if calls:
        say(f"{counted(failed, 'failed call')} of {of}, {causes}")
        return
    unheard = f"; on_finish was not told of {counted(untold, 'end')}" if untold else ""
    say(f"{failed:,} of {of} ended without success, {causes}{unheard}")


def _jobs(objects: ObjectStore, name: str) -> list[JobKey]:
    from runtime.archive.catalog import all_jobs, find_job

    jobs = all_jobs(objects, name)
    if jobs:
        return jobs
    try:
        return [find_job(objects, name)]
    except NotFound:
        raise NotFound(
            f"no job of a batch {name!r} has begun, and no job is called so: 'holdfast ls' lists"
            " the jobs"
        ) from None


def _failures(
    objects: ObjectStore, names: list[JobKey], calls: bool, unreadable: list[str]
) -> Iterator[Failing]:
    from runtime.archive.failure_groups import ends_in_failure, failed_calls, untold
    from runtime.archive.job import JobArchive
    from runtime.archive.reading import read_ahead

    look = failed_calls if calls else ends_in_failure
    if not calls:
        for notice in untold(objects, names[0].batch, unreadable):
            if notice.key in names or not notice.key.job:
                yield notice
    for failures in read_ahead(names, lambda name: list(look(JobArchive.of(objects, name)))):
        yield from failures


def _document(group: FailureGroup, store: str | None) -> dict[str, Any]:
    one = group.example
    return {
        "cause": group.kind,
        "count": group.count,
        "jobs": group.jobs,
        "statuses": group.statuses,
        "example": {
            "job": str(one.key),
            "turn": one.turn or None,
            "reason": one.reason,
            "command": _command(one, store),
        },
    }


def _lines(group: FailureGroup, calls: bool, store: str | None) -> Iterator[str]:
    how = ", ".join(f"{count:,} {status}" for status, count in group.statuses.items())
    if calls:
        how = f"{counted(group.count, 'call')} of {counted(group.jobs, 'job')}"
    yield f"{how}: {one_line(group.kind)}"
    one = group.example
    yield f"  {one.key}: {one_line(one.reason)}"
    yield f"  {_command(one, store)}"


def _command(one: Failing, store: str | None) -> str:
    """The command to look at it, in the archive that was named."""
    return one.command if store is None else f"{one.command} --store {shlex.quote(store)}"
