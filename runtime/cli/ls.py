"""``holdfast ls``: the jobs and how they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.base.errors import NotFound
from runtime.base.plurals import counted
from runtime.base.standings import GOING_ON, OPEN
from runtime.cli.completion import batch_names
from runtime.cli.options import ANY_SERVER, Json, Store
from runtime.cli.output import json_document, say, say_all
from runtime.cli.text import one_line
from runtime.job.stops import JobStatus
from runtime.server.target import Target

if TYPE_CHECKING:
    from runtime.archive.standings import ArchivedStanding
    from runtime.archive.stores import ObjectStore
    from runtime.client.control import Control


def command(
    batch: Annotated[
        str | None,
        typer.Argument(
            metavar="[BATCH]",
            help="Only the jobs of this batch.",
            show_default=False,
            autocompletion=batch_names,
        ),
    ] = None,
    target: Target = ANY_SERVER,
    store: Store = None,
    json: Json = False,
) -> None:
    """List jobs: status, turns, tokens, cost.

    It reads the archive: a job is there from its first turn on. One that has not ended is open, or,
    where the server is in reach, told as it stands: it runs, waits or is paused, and why. Jobs that
    wait for a place in their batch are in 'results' and 'watch'.
    """
    import asyncio

    from runtime.cli.stores import archive_to_read

    rows = asyncio.run(listed(archive_to_read(store), batch, target))
    if not rows and batch is not None:
        raise NotFound(
            f"no job of a batch {batch!r} has begun: 'holdfast ls' lists the jobs of all"
        )
    if json:
        json_document(rows)
        return
    if not rows:
        say("no jobs yet: start some with 'holdfast run JOBS_FILE'")
    width = max((len(row["job"]) for row in rows), default=0)
    say_all(
        f"{row['job']:<{width}}  {row['status']:<10}  {row['turns']:>4}"
        f" {'turn ' if row['turns'] == 1 else 'turns'}  {row['tokens']:>12,} tokens "
        f" ${row['cost_usd']:.4f}  {_said(row)}{_damaged(row)}".rstrip()
        for row in rows
    )


def _said(row: dict[str, Any]) -> str:
    """Why it stands so, how often it was begun anew, and whose sub-job it is."""
    parts = [one_line(row["reason"]) if row["status"] != JobStatus.SUCCEEDED else ""]
    if row["retries"]:
        parts.append(counted(row["retries"], "retry", "retries"))
    if row["parent"] is not None:
        parts.append(f"sub-job of {row['parent']}")
    return "; ".join(filter(None, parts))


def _damaged(row: dict[str, Any]) -> str:
    if not row["damaged"]:
        return ""
    return (
        f"{counted(len(row['damaged']), 'object')} cannot be read: run 'holdfast verify"
        f" {row['job']}'"
    )


FEW = 32
"""So many open jobs are asked themselves; of more, their batch is asked which of them run."""

ALL = 2**53
"""More ends than a batch can have: nothing is told of them."""


async def listed(store: ObjectStore, batch: str | None, target: Target) -> list[dict[str, Any]]:
    """One row a job, sorted by name."""
    import asyncio

    rows = await asyncio.to_thread(archived, store, batch)
    if any(row["status"] == OPEN for row in rows):
        await _ask_temporal(rows, store, target)
    return rows


def archived(store: ObjectStore, batch: str | None) -> list[dict[str, Any]]:
    """One row a job, sorted by name, as the archive alone tells."""
    from runtime.archive.catalog import all_jobs
    from runtime.archive.job import JobArchive
    from runtime.archive.standings import standing_of

    return [row_of(standing_of(JobArchive.of(store, name))) for name in all_jobs(store, batch)]


def row_of(standing: ArchivedStanding) -> dict[str, Any]:
    """How a job stands, as a row."""
    return {
        "job": str(standing.key),
        "batch": standing.key.batch,
        "id": standing.key.job,
        "run": standing.run,
        "damaged": list(standing.damaged),
        "status": standing.status,
        "reason": standing.reason,
        "turns": standing.turns,
        "tokens": standing.tokens,
        "cost_usd": standing.cost_usd,
        "retries": standing.retries,
        "parent": standing.parent or None,
    }


async def _ask_temporal(rows: list[dict[str, Any]], store: ObjectStore, target: Target) -> None:
    """Tell the open jobs apart; without a server they stay ``open``."""
    from runtime.base.errors import ServerError
    from runtime.cli.reach import control_in_reach, note_unknown

    try:
        async with control_in_reach(target, store) as control:
            if control is not None:
                await _tell_apart(rows, control)
    except ServerError as error:
        note_unknown(error)


async def _tell_apart(rows: list[dict[str, Any]], control: Control) -> None:
    import asyncio

    from runtime.base.values import JobKey
    from runtime.client.statuses import told_of

    # Of one that is half deleted the archive says why it has no end.
    left = {
        JobKey(batch=row["batch"], job=row["id"]): row
        for row in rows
        if row["status"] == OPEN and not row["reason"]
    }
    # A batch without a worker lets seconds pass before it is known not to answer.
    for batch in sorted({key.batch for key in left} if len(left) > FEW else ()):
        news = await control.batch_news(batch, ALL)
        for job in news.open if news is not None else ():
            left.pop(JobKey(batch=batch, job=job), None)
    for key, told in (await told_of(control, list(left))).items():
        await asyncio.to_thread(tell, left[key], told, control.store)


def tell(row: dict[str, Any], told: tuple[str, str], store: ObjectStore) -> None:
    """Have the row of an open job say the status and the reason that were told; of one that has
    ended since the row was read, all that it came to.
    """
    from runtime.archive.job import JobArchive
    from runtime.archive.standings import standing_of
    from runtime.base.values import JobKey

    if told[0] not in GOING_ON:
        row |= row_of(standing_of(JobArchive.of(store, JobKey(batch=row["batch"], job=row["id"]))))
    # What was ended in Temporal itself has no end in the archive.
    if row["status"] == OPEN:
        row["status"], row["reason"] = told
