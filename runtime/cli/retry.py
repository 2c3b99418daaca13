"""``holdfast retry``: start jobs anew that ended without success."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.base.errors import HoldfastError, InputError
from runtime.base.plurals import counted
from runtime.base.standings import DAMAGED, GOING_ON
from runtime.cli.completion import batch_names
from runtime.cli.options import ANY_SERVER, Json, Store
from runtime.cli.output import json_document, note, say
from runtime.cli.several import AnyJob, Named, Where, check_named, rows_of
from runtime.server.target import Target

if TYPE_CHECKING:
    from runtime.base.values import JobKey
    from runtime.client.control import Control

_WORDS = "the job begins anew as soon as a worker has it"
_WORKERS = (
    "needs a worker: one that runs, 'holdfast worker', or 'holdfast run JOBS_FILE --rerun-failed'"
)


def command(
    job: AnyJob = None,
    target: Target = ANY_SERVER,
    store: Store = None,
    batch: Annotated[
        str | None,
        typer.Option(
            "--batch",
            metavar="BATCH",
            help="All jobs of this batch that ended without success.",
            show_default=False,
            autocompletion=batch_names,
        ),
    ] = None,
    where: Where = None,
    json: Json = False,
) -> None:
    """Start jobs anew that ended without success.

    Failed, stopped by a budget, or cancelled: each begins from its first turn, as another run of
    the same job in its batch, defined as the archive has it. 'holdfast run --rerun-failed' reads
    the jobs file instead, which may have changed. The batch keeps its concurrency, limits and
    priority, who is told of ends, and its budget: what was spent of that stays spent.

    Jobs that succeeded or have not ended, sub-jobs and forks are refused; with --batch or --where
    they are passed over. The same command again starts no job twice that waits or runs. It works on
    no job itself: that needs a worker.
    """
    import asyncio

    named = Named(job, batch, where)
    if named.job is not None:
        from runtime.cli.reach import with_job

        key = asyncio.run(with_job(named.job, target, store, _one))
        if json:
            json_document({"job": str(key), "retried": True})
        else:
            say(f"{key}: {_WORDS}")
            note(_WORKERS)
        return
    rows = asyncio.run(_several(batch, where, target, store))
    if json:
        json_document(
            [{"job": str(key), "retried": not why, "reason": why} for key, why in rows.items()]
        )
        return
    _tell(rows)


def _tell(rows: Mapping[JobKey, str]) -> None:
    """Tell which jobs begin anew, and how many do not, and why."""
    for key, why in rows.items():
        if not why:
            say(f"{key}: {_WORDS}")
    retried = sum(not why for why in rows.values())
    say(f"{counted(retried, 'job')} of {len(rows)}: retried")
    for why, jobs in Counter(filter(None, rows.values())).most_common():
        say(f"{counted(jobs, 'job')} passed over: {why}")
    if retried:
        note(_WORKERS)


async def _one(control: Control, key: JobKey) -> None:
    from runtime.client.retries import retry

    if why := (await retry(control, key.batch, [key.job])).get(key.job):
        raise InputError(f"job {key} {why}")


async def _several(
    batch: str | None, where: str | None, target: Target, store: str | None
) -> dict[JobKey, str]:
    """The jobs that are meant, and why each is not begun anew; empty if it is."""
    from runtime.base.values import JobKey
    from runtime.cli.stores import archive_of
    from runtime.client.control import Control
    from runtime.client.retries import retry
    from runtime.client.where import where as test_of
    from runtime.server.authentic import NotSigned
    from runtime.server.connection import connect

    test = test_of(where) if where is not None else None
    objects = archive_of(store)
    async with connect(target) as connection:
        control = Control(connection.client, objects)
        every = await rows_of(control, batch)
        check_named(batch, every)
        rows = [row for row in every if test is None or test(row)]
        if not rows:
            note("there is no such job")
        keys = {JobKey(batch=row["batch"], job=row["id"]): _refused(row) for row in rows}
        for name, jobs in _by_batch([key for key, why in keys.items() if not why]).items():
            try:
                refused = await retry(control, name, jobs)
            except (HoldfastError, NotSigned) as error:
                # The batch that is named is all that was meant. Of several, others have begun.
                if batch is not None:
                    raise
                why = error.message if isinstance(error, NotSigned) else str(error)
                refused = dict.fromkeys(jobs, why)
            keys |= {JobKey(batch=name, job=one): why for one, why in refused.items()}
        return keys


def _by_batch(keys: Sequence[JobKey]) -> dict[str, list[str]]:
    batches: dict[str, list[str]] = {}
    for key in keys:
        batches.setdefault(key.batch, []).append(key.job)
    return batches


def _refused(row: Mapping[str, Any]) -> str:
    """What the list says already against beginning a job anew: nobody is asked of it then."""
    from runtime.client.retries import OPEN, SUCCEEDED
    from runtime.client.statuses import BEGINS
    from runtime.job.stops import JobStatus

    status = row["status"]
    if status == JobStatus.SUCCEEDED:
        return SUCCEEDED
    if status == DAMAGED:
        return f"cannot be read in full: run 'holdfast verify {row['job']}'"
    # One that begins anew may have ended just now, and its batch not have heard of it.
    anew = row["run"] is not None and row["reason"] == BEGINS
    return OPEN if status in GOING_ON and not anew else ""
