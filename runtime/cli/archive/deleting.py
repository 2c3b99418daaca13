"""What ``archive delete`` and ``archive prune`` share: asking, deleting, telling."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.base.plurals import counted
from runtime.cli.caller import caller
from runtime.cli.output import note, say
from runtime.server.target import Target

if TYPE_CHECKING:
    from temporalio.client import Client

    from runtime.archive.lifecycle.deletion import Deleted, Wish
    from runtime.archive.stores import ObjectStore
    from runtime.base.values import JobKey

By = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="WHO", help="Who says so. Default: USER@HOST.", show_default=False
    ),
]
Reason = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why; kept with it.", show_default=False)
]
Unfinished = Annotated[
    bool,
    typer.Option(
        "--unfinished", help="Also jobs that have no end, if no server that is reached runs them."
    ),
]


def wish_of(by: str | None, reason: str) -> Wish:
    """The wish to delete, signed if there is a key.

    Raises:
        InputError: if there is no reason, or the key is none.
    """
    from runtime.archive.lifecycle.deletion import Wish, now
    from runtime.archive.signing import signer_of
    from runtime.base.errors import InputError

    if not reason.strip():
        raise InputError("--reason: say why; it is kept with what is left")
    return Wish(by or caller(), now(), reason.strip(), signer_of())


@asynccontextmanager
async def server_in_reach(target: Target) -> AsyncIterator[Client | None]:
    """The server's client, None where none runs: then the archive's word is all there is."""
    from runtime.server.connection import connect_if_up

    async with connect_if_up(target) as connection:
        if connection is None:
            note("whether Temporal runs these jobs is not known: no server is up")
        yield None if connection is None else connection.client


async def refused_of(
    store: ObjectStore, client: Client | None, jobs: Collection[JobKey], *, unfinished: bool
) -> dict[JobKey, str]:
    """Why some of the jobs cannot be deleted, in the order of their names."""
    import asyncio

    from runtime.archive import keys
    from runtime.archive.lifecycle.deletion import refusals
    from runtime.client.lifecycle import still_open

    open_ones = await still_open(store, client, jobs, unfinished=unfinished)
    asked = [keys.job_prefix(job.batch, job.job) for job in jobs]
    more = await asyncio.to_thread(
        refusals,
        store,
        asked,
        {keys.job_prefix(job.batch, job.job): why for job, why in open_ones.items()},
    )
    return dict(sorted((keys.job_of(job), why) for job, why in more.items()))


def carry_out(
    store: ObjectStore, jobs: Collection[JobKey], wish: Wish, *, json: bool
) -> dict[str, Any]:
    """Delete the jobs, and what they alone used; what was done, as JSON."""
    from runtime.archive import keys
    from runtime.archive.gaps import UNREADABLE
    from runtime.archive.lifecycle.deletion import delete_jobs, sweep
    from runtime.archive.lifecycle.tombstones import deleted_jobs
    from runtime.client.lifecycle import open_jobs

    def tell(done: Deleted) -> None:
        if not json:
            say(f"{done.job}: {counted(done.objects, 'object')} deleted")

    names = [keys.job_prefix(job.batch, job.job) for job in sorted(jobs)]
    done = delete_jobs(store, names, wish, tell=tell)
    # Where nothing was ever deleted nothing is left of it.
    waiting = open_jobs(store) if deleted_jobs(store) else []
    removed: list[str] = []
    try:
        # A job that is open may yet take for its own what only deleted ones name.
        removed = [] if waiting else sweep(store)
    except UNREADABLE as error:
        # The jobs are gone, as was asked: a damaged neighbour must not call that a failure.
        note(
            "files, summaries and definitions that only deleted jobs used stay, since what names"
            f" them cannot be read: {error}. Once that is restored, or its job deleted too, a later"
            " deletion takes them ('holdfast verify' tells more)"
        )
    if not json:
        if waiting and jobs:
            note(
                "files, summaries and definitions that only deleted jobs used stay while a job is"
                f" open ({waiting[0]}): a later deletion takes them"
            )
        elif removed:
            say(f"{counted(len(removed), 'object')} that only deleted jobs used")
        elif not done:
            say("nothing was left to delete" if jobs else "nothing to delete")
    return {
        "deleted": [
            {"job": str(one.job), "objects": one.objects, "tombstone": one.tombstone.key}
            for one in done
        ],
        "shared": len(removed),
        "shared_waits_for": [str(job) for job in waiting],
    }


def told(refused: dict[JobKey, str]) -> list[dict[str, str]]:
    """What was refused, as JSON."""
    return [{"job": str(job), "why": why} for job, why in refused.items()]
