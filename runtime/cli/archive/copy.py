"""``holdfast archive copy``: an archive, or some of its jobs, in another store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.base.errors import InputError, NotFound
from runtime.base.plurals import counted
from runtime.cli.exit_codes import DIFFERENCE
from runtime.cli.options import Json
from runtime.cli.output import json_document, note, say

if TYPE_CHECKING:
    from collections.abc import Collection

    from runtime.archive.lifecycle.copying import Copied, CopiedJob
    from runtime.archive.stores import ObjectStore
    from runtime.base.values import JobKey


def command(
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="The archive: a directory or s3://BUCKET/PREFIX.")
    ],
    to: Annotated[
        str, typer.Argument(metavar="TO", help="Where to; it may hold a part of it already.")
    ],
    batch: Annotated[
        list[str] | None,
        typer.Option("--batch", metavar="BATCH", help="The jobs of this batch alone; repeatable."),
    ] = None,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Read and compare also what is there already."),
    ] = False,
    json: Json = False,
) -> None:
    """Copy an archive to another store.

    Whatever an object names is written before it, so the copy is an archive at every moment; a copy
    that was broken off goes on when the command is given again. Each object is checked against its
    digest before it is written, and read back afterwards. With --batch come the jobs of others that
    these were forked from, as far as they need them. Jobs that were deleted in one of the two are
    not brought back by the other. Exit code 4 if an object of FROM is damaged, or TO has another.
    """
    from runtime.archive.lifecycle.copying import copy_archive
    from runtime.archive.stores import open_existing, open_store

    if source.rstrip("/") == to.rstrip("/"):
        raise InputError("FROM and TO are the same archive")
    objects = open_existing(source)
    names = _jobs(objects, source, batch or ())

    def tell(done: CopiedJob) -> None:
        if not json:
            was = f", {done.present:,} were there" if done.present else ""
            say(f"{done.job}: {counted(done.objects, 'object')}, {done.bytes:,} bytes{was}")

    copied = copy_archive(
        objects,
        open_store(to),
        names,
        everything=batch is None,
        compare=compare,
        tell=tell,
    )
    _report(copied, to, json)
    if not copied.whole:
        raise typer.Exit(DIFFERENCE)


def _jobs(objects: ObjectStore, source: str, batches: Collection[str]) -> list[JobKey]:
    """The jobs of these batches, or all.

    Raises:
        NotFound: if one of the batches has none.
    """
    from runtime.archive.catalog import all_jobs

    names = all_jobs(objects)
    # Before anything is written: a name that is misspelt would make an empty copy.
    for batch in batches:
        if not any(name.batch == batch for name in names):
            raise NotFound(f"{source} has no job of a batch {batch!r}")
    return [name for name in names if not batches or name.batch in batches]


def _report(copied: Copied, target: str, json: bool) -> None:
    if json:
        json_document(_document(copied))
        return
    for what in (*copied.damaged.values(), *copied.different.values()):
        note(f"not copied: {what}")
    for job in copied.deleted:
        note(
            f"{job}: was deleted in one of the two, and is not copied: 'holdfast archive delete"
            f" {job} --store {target}' deletes what is left of it there"
        )
    say(
        f"{counted(copied.jobs, 'job')}: {counted(copied.objects, 'object')} copied"
        f" ({copied.bytes:,} bytes), {copied.present:,} were there"
    )


def _document(copied: Copied) -> dict[str, Any]:
    return {
        "jobs": copied.jobs,
        "objects": copied.objects,
        "present": copied.present,
        "bytes": copied.bytes,
        "damaged": copied.damaged,
        "different": copied.different,
        "deleted": [str(job) for job in copied.deleted],
    }
