"""``holdfast results``: what came of the jobs of a batch, one row for each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runtime.base.errors import InputError, NotFound
from runtime.base.plurals import counted
from runtime.cli.options import ANY_SERVER, Batch, Json, Store
from runtime.cli.output import note, write
from runtime.server.target import Target

if TYPE_CHECKING:
    from runtime.archive.stores import ObjectStore
    from runtime.cli.result_forms import Form
    from runtime.client.results import Results


def command(
    batch: Batch,
    json: Json = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Print a JSON object a line.")] = False,
    csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV with a head; results are JSON in a cell.")
    ] = False,
    parquet: Annotated[
        bool, typer.Option("--parquet", help="Write Parquet, to the file of --out.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Write to this file, which is replaced as a whole."
        ),
    ] = None,
    target: Target = ANY_SERVER,
    store: Store = None,
) -> None:
    """Show what came of the jobs of a batch, one row for each.

    A row has the status and the reason, the result, turns, tokens, cost, seconds from the first
    call to the end, model, score, and how often the job was begun anew. It reads the archive alone;
    where the server is in reach, jobs that run or wait are shown as such.
    """
    import asyncio

    from runtime.cli.stores import archive_to_read

    chosen = [name for name, on in _forms(json, jsonl, csv, parquet).items() if on]
    if len(chosen) > 1:
        raise InputError(f"{' and '.join(chosen)}: give one of them")
    if parquet and out is None:
        raise InputError("--parquet is no text: name the file that gets it with --out FILE")
    form = chosen[0] if chosen else "lines"
    asyncio.run(_written(archive_to_read(store), batch, form, out, target))


def _forms(json: bool, jsonl: bool, csv: bool, parquet: bool) -> dict[str, bool]:
    return {"--json": json, "--jsonl": jsonl, "--csv": csv, "--parquet": parquet}


async def _written(
    store: ObjectStore, batch: str, form: str, out: Path | None, target: Target
) -> None:
    """Write the rows in a form, to a file or to stdout."""
    from runtime.cli.reach import control_in_reach
    from runtime.client.results import Results

    async with control_in_reach(target, store) as control:
        await _write(Results(store, batch, control), form, out)


async def _write(results: Results, form: str, out: Path | None) -> None:
    from runtime.client.statuses import untold

    known = await results.known()
    ids = known.ids
    if known.untold:
        note(untold(results.batch))
    if not ids:
        raise NotFound(
            f"no job of a batch {results.batch!r} has begun: 'holdfast ls' lists the jobs of all"
        )

    async def fill(made: Form) -> None:
        async for row in results.rows(known):
            made.row(row)
        made.end()

    if out is None:
        await fill(_form(form, ids, write))
        return
    from runtime.cli.files import replaced
    from runtime.cli.result_forms import Parquet

    with replaced(out) as file:

        def written(text: str) -> None:
            file.write(text.encode())

        await fill(Parquet(file) if form == "--parquet" else _form(form, ids, written))
    note(f"{counted(len(ids), 'row')} in {out}")


def _form(name: str, ids: list[str], write: Callable[[str], None]) -> Form:
    """The form of an option's name, which gives its text to ``write``."""
    from runtime.cli.result_forms import Csv, JsonArray, JsonLines, Lines

    match name:
        case "--json":
            return JsonArray(write)
        case "--jsonl":
            return JsonLines(write)
        case "--csv":
            return Csv(write)
        case _:
            return Lines(write, ids)
