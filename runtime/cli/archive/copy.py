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
    plain: Annotated[
        bool,
        typer.Option("--plain", help="TO may be readable to all, though FROM is encrypted."),
    ] = False,
    json: Json = False,
) -> None:
    """Copy an archive to another store.

    Whatever an object names is written before it, so the copy is an archive at every moment; a copy
    that was broken off goes on when the command is given again. Each object is checked against its
    digest before it is written, and read back afterwards. With --batch come the jobs of others that
    these were forked from, as far as they need them. Jobs that were deleted in one of the two are
    not brought back by the other. A copy of an encrypted archive is encrypted, with the first key
    of HOLDFAST_ENCRYPTION_KEYS; where TO is an archive that is not, nothing is copied without
    --plain. Exit code 4 if an object of FROM is damaged, or named and not there, or TO has another;
    of what TO has already --compare alone sees that.
    """
    from runtime.archive.catalog import check_free, known_archive_id
    from runtime.archive.lifecycle.copying import copy_archive
    from runtime.archive.stores import is_encrypted, open_existing, overlap

    if overlap(source, to):
        raise InputError(
            "FROM and TO are the same archive, or one lies in the other, of which it would be a"
            " batch"
        )
    objects = open_existing(source)
    names = _jobs(objects, source, batch or ())
    # Before anything is made at TO: of what is encrypted with other keys nothing can be copied.
    known_archive_id(objects)
    check_free(to)
    target = _target(to, objects, plain=plain)

    def tell(done: CopiedJob) -> None:
        if not json:
            was = f", {done.present:,} were there" if done.present else ""
            say(f"{done.job}: {counted(done.objects, 'object')}, {done.bytes:,} bytes{was}")

    copied = copy_archive(
        objects,
        target,
        names,
        everything=batch is None,
        compare=compare,
        tell=tell,
    )
    _report(copied, to, json, compared=compare, encrypted=is_encrypted(target))
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


def _target(url: str, source: ObjectStore, *, plain: bool) -> ObjectStore:
    """Where the copy goes: what is encrypted stays so, unless it is said to be copied ``plain``.

    Raises:
        InputError: if the source is encrypted, and what is there is not.
    """
    from runtime.archive.stores import encrypted_at, is_encrypted, open_store

    if plain or not is_encrypted(source):
        return open_store(url)
    target = encrypted_at(url)
    if target is None:
        raise InputError(
            f"nothing was copied: FROM is encrypted, and the archive at {url} is not. Copy it to"
            " another place, or give --plain to have it readable there"
        )
    return target


def _report(copied: Copied, target: str, json: bool, *, compared: bool, encrypted: bool) -> None:
    if json:
        json_document({**_document(copied), "encrypted": encrypted})
        return
    wrong = copied.damaged | copied.missing | copied.different
    for what in wrong.values():
        note(f"not copied: {what}")
    for job in copied.deleted:
        note(
            f"{job}: was deleted in one of the two, and is not copied: 'holdfast archive delete"
            f" {job} --reason TEXT --store STORE' deletes what is left of it in the other"
        )
    there = f"{copied.present:,} were there"
    if copied.present:
        there += " and were compared" if compared else ", which --compare alone looks at"
    say(
        f"{counted(copied.jobs, 'job')}: {counted(copied.objects, 'object')} copied"
        f" ({copied.bytes:,} bytes), {there}; {target} is"
        f" {'encrypted' if encrypted else 'not encrypted'}"
    )


def _document(copied: Copied) -> dict[str, Any]:
    return {
        "jobs": copied.jobs,
        "objects": copied.objects,
        "present": copied.present,
        "bytes": copied.bytes,
        "damaged": copied.damaged,
        "missing": copied.missing,
        "different": copied.different,
        "deleted": [str(job) for job in copied.deleted],
    }
