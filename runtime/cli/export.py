"""``holdfast export``: a job's archive in a form that other programs read."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from runtime.cli.chosen import Run
from runtime.cli.options import Job, Store
from runtime.cli.output import json_line
from runtime.errors import NotFound


class Format(StrEnum):
    """The form of an export."""

    JSONL = "jsonl"
    OTEL = "otel"


def command(
    job: Job,
    format: Annotated[
        Format,
        typer.Option(
            "--format", help="jsonl: everything, a line a turn. otel: OpenTelemetry's GenAI spans, OTLP JSON."
        ),
    ] = Format.JSONL,
    run: Run = None,
    store: Store = None,
) -> None:
    """Print all that the archive has of a run, as JSON lines.

    The definition, each turn with its attempts, requests, response, statement's execution and new segments, and the end.
    """
    from runtime.archive.export import export_lines
    from runtime.archive.genai import genai_lines
    from runtime.catalog import find_job
    from runtime.cli.stores import archive_to_read

    objects = archive_to_read(store)
    name = find_job(objects, job)
    archive = name.archive(objects)
    runs = archive.runs()
    chosen = run or (runs[-1] if runs else None)
    if chosen is None or chosen not in runs:
        has = f"it has {', '.join(runs) or 'none yet'}"
        raise NotFound(
            f"{name} has no run {run!r} in the archive; {has}" if run else f"{name} has no turn in the archive yet"
        )
    lines = export_lines(archive, chosen) if format is Format.JSONL else genai_lines(archive, chosen)
    for line in lines:
        json_line(line)
