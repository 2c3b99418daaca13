"""``holdfast cost``: what jobs have used and spent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.base.plurals import counted
from runtime.cli.options import Json, Store
from runtime.cli.output import json_document, say

if TYPE_CHECKING:
    from runtime.archive.stores import ObjectStore
    from runtime.base.values import JobKey


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[BATCH|JOB]",
            help="A batch or a job; all batches by default.",
            show_default=False,
        ),
    ] = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Show what jobs have used and spent, and each batch's total.

    Of one job there is no total of its batch. Every archived call counts, those of earlier runs
    too. The price is litellm's. Where a provider reported no usage, it is that of an estimate. A
    moved prefix is a prompt that changed before its end, with what was paid for it since the
    provider's cache did not hold.
    """
    from runtime.archive.job import JobArchive
    from runtime.archive.spending import spent
    from runtime.cli.stores import archive_to_read

    objects = archive_to_read(store)
    jobs, alone = _jobs(objects, name)
    rows = [
        {"job": str(job), "batch": job.batch, **spent(JobArchive.of(objects, job))} for job in jobs
    ]
    batches: dict[str, dict[str, Any]] = {}
    # The rest of the batch of a job that was named is not counted: its sum is not the batch's.
    for batch in () if alone else dict.fromkeys(row["batch"] for row in rows):
        batches[batch] = total(row for row in rows if row["batch"] == batch)
    if json:
        told = [{field: value for field, value in row.items() if field != "batch"} for row in rows]
        json_document({"jobs": told, "batches": batches, "total": total(rows)})
        return
    lines = [(row["job"], row) for row in rows] + [
        (f"{batch} in all", row) for batch, row in batches.items()
    ]
    if len(batches) > 1:
        lines.append(("total", total(rows)))
    width = max((len(label) for label, _ in lines), default=0)
    for label, row in lines:
        say(f"{label:<{width}}  {_text(row)}")
    if not rows:
        say("no jobs yet: start some with 'holdfast run JOBS_FILE'")


def total(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The sums of rows."""
    from runtime.archive.spending import COUNTED

    listed = list(rows)
    lost = [key for row in listed for key in row["damaged"]]
    return {
        **{name: round(sum(row[name] for row in listed), 9) for name in COUNTED},
        "damaged": lost,
    }


def _jobs(objects: ObjectStore, name: str | None) -> tuple[list[JobKey], bool]:
    """The jobs that are meant, and whether that is one by its own name."""
    from runtime.archive.catalog import all_jobs, find_job

    batch = list(all_jobs(objects, name))
    return (batch, False) if batch or name is None else ([find_job(objects, name)], True)


def _text(row: dict[str, Any]) -> str:
    extra = [counted(row[name], *words) for name, words in _REMARKS if row[name]]
    if row["moved_prefixes"]:
        moved = counted(row["moved_prefixes"], "moved prefix", "moved prefixes")
        extra.append(f"{moved} (${row['lost_usd']:.4f})")
    extra += (
        [f"{counted(len(row['damaged']), 'object')} cannot be read: run 'holdfast verify'"]
        if row["damaged"]
        else []
    )
    if row["commands"]:
        extra.append(f"{counted(row['commands'], 'command')}, {row['command_seconds']:,.1f} s")
    if row["effects"]:
        extra.append(f"{counted(row['effects'], 'effect')}, {row['effect_seconds']:,.1f} s")
    if row["failed_tokens"]:
        extra.insert(
            0, f"of it on failed attempts {row['failed_tokens']:,} tokens, ${row['failed_usd']:.4f}"
        )
    return (
        f"{row['calls']:>6} {'call ' if row['calls'] == 1 else 'calls'}  {row['prompt']:>12,}"
        f" prompt ({row['cache_read']:,} from cache) {row['completion']:>10,} completion "
        f" ${row['cost_usd']:.4f}" + "".join(f"  {remark}" for remark in extra)
    )


_REMARKS = (
    ("failed_attempts", ("failed attempt",)),
    ("unreported", ("call without reported usage", "calls without reported usage")),
)
