"""``holdfast export``: a job's archive in a form that other programs read."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from runtime.base.errors import InputError, NotFound
from runtime.cli.chosen import Run
from runtime.cli.completion import job_names
from runtime.cli.options import Store
from runtime.cli.output import json_line, note, write

if TYPE_CHECKING:
    from runtime.archive.export import Turns
    from runtime.archive.gaps import Gap
    from runtime.archive.job import JobArchive
    from runtime.archive.stores import ObjectStore
    from runtime.base.values import JobKey


class Format(StrEnum):
    """The form of an export."""

    JSONL = "jsonl"
    OTEL = "otel"
    INSPECT = "inspect"


def command(
    job: Annotated[
        str,
        typer.Argument(
            metavar="JOB|BATCH",
            help="BATCH/ID, any unique prefix of the id, or 'last'; a batch for Inspect.",
            show_default=False,
            autocompletion=job_names,
        ),
    ],
    format: Annotated[
        Format,
        typer.Option(
            "--format",
            help=(
                "jsonl: everything, a line a turn. otel: OpenTelemetry's GenAI spans, OTLP JSON."
                " inspect: a log of Inspect, also of a whole batch."
            ),
        ),
    ] = Format.JSONL,
    turns: Annotated[
        str | None,
        typer.Option("--turns", metavar="A..B", help="These turns alone: A..B, A.., ..B or A."),
    ] = None,
    delta: Annotated[
        bool,
        typer.Option(
            "--delta",
            help=(
                "Prompts as what is new in each (jsonl): as large as the job's news, not its"
                " prompts."
            ),
        ),
    ] = False,
    run: Run = None,
    store: Store = None,
) -> None:
    """Print all that the archive has of a run, as JSON lines.

    The definition, each turn with its attempts, requests, response, statement's execution and new
    segments, and the end. Each request is whole, so a job of 2,000 turns is hundreds of megabytes;
    with --delta, a layout is told by the one before ("layout_delta": [start, stop] of its segments,
    or the digest of one that "new_segments" has), and a request likewise ("base", and "parts":
    [start, stop] of its bytes, or new ones). The first of --turns is always told in full.

    'export BATCH --format inspect > night.json' makes a log that 'inspect view' opens: a sample a
    job, with its scores and the conversation as the model last saw it.
    """
    if delta and format is not Format.JSONL:
        raise InputError("--delta is a form of jsonl: spans have their whole prompt")
    from runtime.archive.export import export_lines
    from runtime.archive.export_forms import Delta, Full
    from runtime.archive.genai import genai_lines
    from runtime.archive.job import JobArchive
    from runtime.cli.deleted import job_to_read
    from runtime.cli.showing import chosen_run, tell_newest
    from runtime.cli.stores import archive_to_read

    objects = archive_to_read(store)
    if format is Format.INSPECT:
        if turns is not None or run is not None:
            raise InputError("a log of Inspect has whole jobs, by their newest runs")
        _inspect(objects, job)
        return
    name = job_to_read(objects, job)
    archive = JobArchive.of(objects, name)
    chosen, wanted = chosen_run(archive, str(name), run), _turns(turns)
    if turns is not None:
        _check_held(archive, chosen, wanted, f"{name} has no turn of {turns} in run {chosen}")
    if run is None:
        tell_newest(archive, str(name))
    gaps: list[Gap] = []
    if format is Format.OTEL:
        lines = genai_lines(archive, chosen, wanted, gaps)
    else:
        lines = export_lines(archive, chosen, wanted, form=Delta if delta else Full)
    for line in lines:
        json_line(line)
    # What lines of JSON say themselves, spans have no place for.
    for gap in dict.fromkeys(gaps):
        if gap.turn is None or wanted.hold(gap.turn):
            note(f"left out: {gap}: run 'holdfast verify {name}'")


def _check_held(archive: JobArchive, run: str, wanted: Turns, none: str) -> None:
    """See that a run has some of the ``wanted`` turns.

    Raises:
        ObjectCorrupt: if it had, and they cannot be read.
        NotFound: if it has ``none``.
    """
    from runtime.archive.changes import attempts_shown
    from runtime.archive.gaps import check_turns, readable

    held = [turn for turn, _ in attempts_shown(archive, run, None, [])]
    if any(map(wanted.hold, held)):
        return
    for gap in readable(archive, run).gaps:
        if gap.turn is not None and wanted.hold(gap.turn):
            check_turns(archive, run, gap.turn)
    has = f"turns {min(held)} to {max(held)}" if held else "none that can be read"
    raise NotFound(f"{none}: it has {has}")


def _inspect(objects: ObjectStore, name: str) -> None:
    from runtime.archive.inspect_log import inspect_log
    from runtime.cli.deleted import jobs_to_read

    gaps: dict[JobKey, list[str]] = {}
    for piece in inspect_log(objects, jobs_to_read(objects, name), gaps):
        write(piece)
    for job, damaged in gaps.items():
        more = f" (and {len(damaged) - 1} more)" if len(damaged) > 1 else ""
        note(f"{job} is not told whole: {damaged[0]}{more}: run 'holdfast verify {job}'")


def _turns(text: str | None) -> Turns:
    from runtime.archive.export import Turns

    match = re.fullmatch(r"(\d{0,9})(\.\.)?(\d{0,9})", "" if text is None else text, re.ASCII)
    first, dots, last = match.groups() if match is not None else ("", None, "")
    if text is not None and (match is None or not (first or last)):
        raise InputError(f"--turns {text}: expected A..B, A.., ..B or A, as in 10..20")
    wanted = Turns(
        int(first or 0), int(last) if last else int(first) if first and not dots else None
    )
    if wanted.last is not None and wanted.last < wanted.first:
        raise InputError(f"--turns {text}: {wanted.last} is before {wanted.first}")
    return wanted
