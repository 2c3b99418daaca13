"""``holdfast show``: what the model was shown at a turn, and what came of it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.base.errors import InputError
from runtime.cli.chosen import JobAtTurn, Run
from runtime.cli.job_turn import TURN, parse_job_turn
from runtime.cli.options import Json, Store
from runtime.cli.output import json_document, note, pretty, raw, say

if TYPE_CHECKING:
    from runtime.cli.showing import ShownTurn


class Part(StrEnum):
    """What of a turn is shown. The command's help tells what each is."""

    PROMPT = "prompt"
    REQUEST = "request"
    RESPONSE = "response"
    WIRE = "wire"
    WIRE_RESPONSE = "wire-response"
    STATEMENT = "statement"
    NODES = "nodes"
    NAMESPACE = "namespace"
    EVENTS = "events"
    SEGMENTS = "segments"
    ATTEMPTS = "attempts"
    FORGOTTEN = "forgotten"
    CHUNKS = "chunks"


RAW = frozenset({Part.WIRE, Part.WIRE_RESPONSE})
"""Parts that are bytes and are printed as they are."""


def command(
    job: JobAtTurn,
    part: Annotated[
        Part,
        typer.Option(
            "--part",
            metavar="NAME",
            help="What of the turn to show: see above.",
            show_default=False,
        ),
    ] = Part.PROMPT,
    turns: Annotated[
        str | None,
        typer.Option("--turns", metavar="A..B", help="These turns of a JOB, one after the other."),
    ] = None,
    attempt: Annotated[
        int | None,
        typer.Option(
            "--attempt", metavar="K", help="The turn's K-th attempt, also one that failed."
        ),
    ] = None,
    run: Run = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Print what the model was shown at a turn.

    The whole prompt as text, or the part of the turn that --part names. It reads the archive alone.
    All headings have the same number of dashes, which no line of a text has that looks like one.

    \b
    prompt         what the model was shown, as text (the default)
    segments       the prompt's parts: kind, origin, tokens, digest, bytes
    request        the request as JSON, readable
    response       the reply as JSON, readable
    wire           the request's exact bytes
    wire-response  the reply's exact bytes
    statement      the statement that the model wrote, and its execution
    namespace      the variables as they stood
    nodes          the nodes as they stood
    events         what happened to the context since the call before
    forgotten      what the prompt no longer shows, and what stands in its place
    attempts       the attempts, and how the failed ones failed
    chunks         when each piece of the reply arrived, and its size
    """
    if json and part in RAW:
        raise InputError(f"--part {part} prints exact bytes: it does not go with --json")
    wanted = parse_job_turn(job)
    if turns is not None and (wanted.turn is not None or attempt is not None or part in RAW):
        raise InputError(
            "--turns shows readable parts of several turns of a JOB: no '@N', --attempt or exact"
            " bytes with it"
        )
    from runtime.archive.job import JobArchive
    from runtime.cli.deleted import job_to_read
    from runtime.cli.showing import ShownTurn
    from runtime.cli.stores import archive_to_read

    objects = archive_to_read(store)
    name = job_to_read(objects, wanted.job)
    archive = JobArchive.of(objects, name)
    if turns is not None:
        shown = [ShownTurn(archive, str(name), run, turn) for turn in parse_turns(turns)]
        _print_all(shown, part, json)
        return
    turn = ShownTurn(archive, str(name), run, wanted.turn, attempt)
    if part in RAW:
        _print_bytes(turn, part)
    else:
        _print(turn, part, json)


def _print_bytes(turn: ShownTurn, part: Part) -> None:
    raw(turn.wire() if part is Part.WIRE else turn.wire_response())
    _note_gap(turn)
    if not turn.is_wire():
        note(
            "these bytes went over no wire: they are what was handed to the provider and what it"
            " returned"
        )


def _note_gap(turn: ShownTurn) -> None:
    gap = turn.gap()
    if gap is not None:
        note(f"not all of turn {turn.turn} can be read: {gap}: run 'holdfast verify {turn.name}'")


def _print(turn: ShownTurn, part: Part, json: bool) -> None:
    value, text = _part_of(turn, part)
    if json:
        gap = turn.gap()
        damaged = {} if gap is None else {"damaged": gap.document()}
        about = {"job": turn.name, "run": turn.run, "turn": turn.turn}
        json_document({**about, str(part): value, **damaged})
        return
    _note_gap(turn)
    say(text)


def _print_all(shown: list[ShownTurn], part: Part, json: bool) -> None:
    from runtime.archive.gaps import UNREADABLE
    from runtime.cli.headings import Headed, under_headings

    rows: list[dict[str, Any]] = []
    parts: list[Headed] = []
    for turn in shown:
        about = {"job": turn.name, "run": turn.run, "turn": turn.turn}
        try:
            value, text = _part_of(turn, part)
            problem = str(turn.gap() or "")
        except UNREADABLE as error:
            value, text, problem = None, "", str(error)
        if problem:
            about |= {"damaged": problem}
            text = f"DAMAGED: {problem}\n{text}".rstrip("\n")
        rows.append({**about, str(part): value})
        parts.append(Headed(text, turn.address))
    if json:
        json_document(rows)
    else:
        say(under_headings(parts, "="))


def _part_of(turn: ShownTurn, part: Part) -> tuple[Any, str]:
    """A part as JSON and as text."""
    from runtime.cli.condensations import forgotten_rows, forgotten_text, notes_of
    from runtime.cli.segments import segment_rows, segments_text
    from runtime.cli.showing import (
        attempts_text,
        chunks_text,
        events_text,
        namespace_text,
        nodes_text,
        prompt_text,
        statement_text,
    )

    match part:
        case Part.PROMPT:
            segments = turn.prompt()
            return [segment.model_dump(mode="json") for segment in segments], prompt_text(
                segments, *notes_of(turn)
            )
        case Part.SEGMENTS:
            rows = segment_rows(turn)
            return rows, segments_text(rows)
        case Part.REQUEST:
            return turn.request(), pretty(turn.request())
        case Part.RESPONSE:
            return turn.response(), pretty(turn.response())
        case Part.STATEMENT:
            return turn.statement(), statement_text(turn.statement())
        case Part.NAMESPACE:
            return turn.namespace(), namespace_text(turn.namespace())
        case Part.EVENTS:
            return turn.events(), events_text(turn.events())
        case Part.ATTEMPTS:
            return turn.attempts(), attempts_text(turn.attempts())
        case Part.FORGOTTEN:
            rows = forgotten_rows(turn)
            return rows, forgotten_text(rows)
        case Part.CHUNKS:
            return turn.chunks(), chunks_text(turn.chunks())
        case _:
            return turn.nodes(), nodes_text(turn.nodes())


def parse_turns(text: str) -> range:
    """The turns of ``A..B``, both included.

    Raises:
        InputError: if it is none.
    """
    first, dots, last = text.partition("..")
    numbers = [int(n) for n in (first, last) if TURN.fullmatch(n)]
    if not dots or len(numbers) != 2 or numbers[0] > numbers[1]:
        raise InputError(
            f"{text!r} is no A..B: two numbers of turns, the smaller one first, as in '3..7'"
        )
    return range(numbers[0], numbers[1] + 1)
