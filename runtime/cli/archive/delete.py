"""``holdfast archive delete``: take jobs out of the archive for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from runtime.base.errors import InputError, NotFound
from runtime.cli.archive.deleting import (
    By,
    Reason,
    Unfinished,
    carry_out,
    refused_of,
    server_in_reach,
    told,
    wish_of,
)
from runtime.cli.completion import job_names
from runtime.cli.options import ANY_SERVER, Json, Store
from runtime.cli.output import json_document
from runtime.server.target import Target

if TYPE_CHECKING:
    from runtime.archive.stores import ObjectStore
    from runtime.base.values import JobKey


def command(
    job: Annotated[
        list[str],
        typer.Argument(
            metavar="JOB...",
            help="BATCH/ID in full.",
            show_default=False,
            autocompletion=job_names,
        ),
    ],
    reason: Reason,
    by: By = None,
    unfinished: Unfinished = False,
    target: Target = ANY_SERVER,
    store: Store = None,
    json: Json = False,
) -> None:
    """Delete jobs from the archive for good.

    A tombstone stays, signed if HOLDFAST_SIGNING_KEY is set: who, when, why, and the digest of each
    object that is gone; 'verify' tells a deletion from a loss by it. What other jobs use too stays,
    as does what those may use that cannot be read. Refused for jobs that are open, held ('archive
    hold'), locked by their bucket, or from which others that stay were forked, or may have been. A
    deletion that was broken off goes on when the command is given again. Temporal's histories, a
    provider's logs and copies of the archive are not touched.
    """
    import asyncio

    from runtime.cli.stores import archive_of

    objects = archive_of(store)
    wish = wish_of(by, reason)
    names = [_named(objects, one) for one in dict.fromkeys(job)]

    async def refused() -> dict[JobKey, str]:
        async with server_in_reach(target) as client:
            return await refused_of(objects, client, names, unfinished=unfinished)

    # All are asked about first: half a deletion could not be taken back.
    if refusals := asyncio.run(refused()):
        if json:
            json_document({"deleted": [], "refused": told(refusals)})
        raise InputError(
            "nothing was deleted: " + "; ".join(f"{key}: {why}" for key, why in refusals.items())
        )
    done = carry_out(objects, names, wish, json=json)
    if json:
        json_document({**done, "refused": []})


def _named(store: ObjectStore, name: str) -> JobKey:
    """The job of that very name: a prefix is too little for what cannot be undone. One that was
    deleted may have left what it alone used.
    """
    from runtime.archive.catalog import find_job
    from runtime.archive.lifecycle.tombstones import deleted_jobs

    # Asked of the tombstones first: the archive does not list it as a job any more.
    if gone := [key for key in deleted_jobs(store) if str(key) == name]:
        return gone[0]
    job = find_job(store, name)
    if str(job) != name:
        raise NotFound(f"write {name!r} in full: {str(job)!r}")
    return job
