"""The jobs that a command acts on: one that is named, those of a batch, or those of which an
expression holds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.base.errors import InputError, NotFound
from runtime.base.plurals import counted
from runtime.base.standings import GOING_ON, OPEN, QUEUED, RUNNING
from runtime.cli.completion import batch_names, job_names
from runtime.cli.exit_codes import SOME_FAILED
from runtime.cli.output import json_document, note, say
from runtime.server.target import Target

if TYPE_CHECKING:
    from runtime.base.values import JobKey
    from runtime.client.control import Control
    from runtime.client.wishes import BatchWish

AnyJob = Annotated[
    str | None,
    typer.Argument(
        metavar="[JOB]",
        help="BATCH/ID, any unique prefix of the id, or 'last'.",
        show_default=False,
        autocompletion=job_names,
    ),
]
Batch = Annotated[
    str | None,
    typer.Option(
        "--batch",
        metavar="BATCH",
        help="All jobs of this batch that have not ended.",
        show_default=False,
        autocompletion=batch_names,
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="EXPRESSION",
        help=(
            "The jobs of which this holds, such as 'status=waiting and cost>1': status, reason,"
            " job, batch (=, !=, ~ for 'holds'), turns, tokens, cost (=, !=, <, <=, >, >=), and,"
            " or, not, parentheses."
        ),
        show_default=False,
    ),
]

TRIES = 25
"""How often a job is told something that has just got its place, until it hears it."""

Act = Callable[["Control", "JobKey"], Awaitable[None]]


@dataclass(frozen=True)
class Named:
    """What a user named: one ``job``, or those of a ``batch``, of which an expression holds
    (``where``), or both.

    Raises:
        InputError: if that is nothing or too much.
    """

    job: str | None
    batch: str | None
    where: str | None

    def __post_init__(self) -> None:
        if (self.job is None) == (self.batch is None and self.where is None):
            raise InputError("name one job, or several with --batch or --where")
        # Before a server is asked, or started: no job and no batch has this name.
        if "" in {self.job, self.batch}:
            raise InputError("'' names no job and no batch")


def act_on(
    named: Named,
    target: Target,
    store: str | None,
    act: Act,
    *,
    done: str,
    words: str,
    json: bool,
    hold: BatchWish | None = None,
) -> None:
    """Do ``act`` with each of the jobs, and tell what was done: ``done`` is its name in JSON,
    ``words`` what is said of one job. ``hold`` is what a whole batch is asked.

    Raises:
        InputError: if the expression is none.
        NotFound: if there is no such job.
        typer.Exit: if each of several refused.
    """
    import asyncio

    if named.job is not None:
        from runtime.cli.reach import with_job

        key = asyncio.run(with_job(named.job, target, store, act))
        if json:
            json_document({"job": str(key), done: True})
        else:
            say(f"{key}: {words}")
        return
    rows = asyncio.run(_several(named.batch, named.where, target, store, act, hold))
    did = sum(not why for _, why in rows)
    if json:
        json_document([{"job": str(key), done: not why, "reason": why} for key, why in rows])
    else:
        for key, why in rows:
            say(f"{key}: {why or words}")
        say(f"{counted(did, 'job')} of {len(rows)}: {done}")
    # Some may have ended since they were listed; and a batch that is asked does it for its jobs.
    if rows and not did and (hold is None or named.where is not None):
        raise typer.Exit(SOME_FAILED)


async def _several(
    batch: str | None,
    where: str | None,
    target: Target,
    store: str | None,
    act: Act,
    hold: BatchWish | None,
) -> Sequence[tuple[JobKey, str]]:
    """The jobs that are meant, and why each refused; empty if it did not."""
    from runtime.base.values import JobKey
    from runtime.cli.stores import archive_to_control
    from runtime.client.control import Control
    from runtime.client.statuses import BEGINS
    from runtime.client.where import where as test_of
    from runtime.server.connection import connect
    from runtime.server.gathered import gathered

    test = test_of(where) if where is not None else None
    objects = archive_to_control(store)
    async with connect(target) as connection:
        control = Control(connection.client, objects)
        cancels = hold == "withdraw_all"
        # Where an expression chooses among its jobs, the batch itself is asked nothing.
        rows, held = await _listed(control, batch, hold if test is None else None)
        if not held:
            check_named(batch, rows)
        chosen = [
            JobKey(batch=row["batch"], job=row["id"])
            for row in rows
            if (test(row) if test is not None else row["status"] in GOING_ON)
            # The batch holds those that wait: they have no workflow that could be asked.
            and not (held and not cancels and row["status"] == QUEUED)
        ]
        waits = {row["job"] for row in rows if row["status"] == QUEUED}
        begin = {row["job"] for row in rows if (row["status"], row["reason"]) == (RUNNING, BEGINS)}
        asked = {key for key in chosen if str(key) in waits} if cancels else set()
        if not held:
            asked = await _withdrawn(control, asked)
            if not chosen:
                note("there is no such job" if test is not None else "no job of it is open")
        elif hold in _OTHERS:
            # Without a worker nobody knows which those are.
            note(f"batch {batch!r} is asked, too: {_OTHERS[hold]}")

        async def one(key: JobKey) -> str:
            if key in asked:
                return ""
            return await refusal(act, control, key, TRIES if str(key) in begin else 1)

        reasons = await gathered(one, chosen)
        return list(zip(chosen, reasons, strict=True))


async def refusal(act: Act, control: Control, key: JobKey, tries: int) -> str:
    """Why a job refused what was to be done; empty if it did not. One that does not run is asked so
    often.
    """
    import asyncio

    from runtime.client.moves import POLL_SECONDS

    for left in reversed(range(tries)):
        try:
            await act(control, key)
        # It may have no room for what it is told.
        except InputError as error:
            return str(error)
        # It may have ended since it was listed, or be started in a moment.
        except NotFound as error:
            if not left:
                return str(error)
            await asyncio.sleep(POLL_SECONDS)
        else:
            break
    return ""


_OTHERS = {
    "withdraw_all": "its jobs that wait for their places end as cancelled",
    "pause": "no other job of it begins until 'holdfast resume --batch'",
}
"""What becomes of the jobs of a batch that have not begun, by what the batch is asked."""


async def _listed(
    control: Control, batch: str | None, hold: BatchWish | None
) -> tuple[list[dict[str, Any]], bool]:
    """The jobs that may be meant, and whether their batch was asked to ``hold`` them.

    Raises:
        NotFound: if there is no such batch to be paused, or to go on.
    """
    from runtime.client.wishes import hold_batch

    if batch is None or hold is None:
        return await rows_of(control, batch), False
    if hold != "withdraw_all":
        # First the batch: else a job could begin between the listing and this.
        await hold_batch(control, batch, hold)
        return await rows_of(control, batch), True
    # Listed before: those that wait begin by it, to end.
    rows = await rows_of(control, batch)
    try:
        await hold_batch(control, batch, hold)
    # A batch that has ended may have left jobs that run.
    except NotFound:
        return rows, False
    return rows, True


async def _withdrawn(control: Control, keys: set[JobKey]) -> set[JobKey]:
    """Cancel those of the jobs that are in pages; which they are."""
    from runtime.base.values import JobKey
    from runtime.client.withdrawing import withdraw

    return {
        JobKey(batch=batch, job=job)
        for batch in sorted({key.batch for key in keys})
        for job in await withdraw(control, batch, {key.job for key in keys if key.batch == batch})
    }


def check_named(batch: str | None, rows: Sequence[object]) -> None:
    """See that the ``batch`` that was named has jobs: else its name is mistyped, as a rule.

    Raises:
        NotFound: if it has none.
    """
    if batch is not None and not rows:
        raise NotFound(
            f"no job of a batch {batch!r} has begun: 'holdfast ls' lists the jobs of all"
        )


async def rows_of(control: Control, batch: str | None) -> list[dict[str, Any]]:
    """The jobs that are archived, and those of batches that run which are not yet, or wait for
    their places.
    """
    import asyncio

    from runtime.base.values import JobKey
    from runtime.cli.ls import archived, row_of, tell
    from runtime.client.statuses import told_by_batch, told_of, untold

    rows = await asyncio.to_thread(archived, control.store, batch)
    stands = {row["job"]: row["status"] for row in rows}
    left = {JobKey(batch=row["batch"], job=row["id"]): row for row in rows if row["status"] == OPEN}
    for key, standing in (await told_of(control, list(left))).items():
        await asyncio.to_thread(tell, left[key], standing, control.store)
    by_job = {row["job"]: row for row in rows}
    for name in {row["batch"] for row in rows} | ({batch} if batch is not None else set()):
        known = {row["id"]: stands[row["job"]] for row in rows if row["batch"] == name}
        if (others := await told_by_batch(control, name, known)) is None:
            note(untold(name))
            continue
        for told in map(row_of, others):
            # One that is to be begun anew keeps what it has used.
            row = by_job.setdefault(told["job"], told)
            row["status"], row["reason"] = told["status"], told["reason"]
    return [by_job[job] for job in sorted(by_job)]
