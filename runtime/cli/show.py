"""``holdfast show``: what the model was shown at a turn, and what came of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from runtime.cli.job_turn import parse_job_turn
from runtime.cli.options import Json, Store
from runtime.cli.output import json_document, note, pretty, raw, say
from runtime.errors import InputError


class Part(StrEnum):
    """What of a turn is shown."""

    PROMPT = "prompt"
    REQUEST = "request"
    RESPONSE = "response"
    WIRE = "wire"
    WIRE_RESPONSE = "wire-response"
    STATEMENT = "statement"
    NODES = "nodes"


RAW = frozenset({Part.WIRE, Part.WIRE_RESPONSE})
"""Parts that are bytes and are printed as they are."""


def command(
    job: Annotated[
        str,
        typer.Argument(
            metavar="JOB@N",
            help="A job (BATCH/ID, a unique prefix of the id, or 'last') and a turn; without '@N', its newest turn.",
            show_default=False,
        ),
    ],
    request: Annotated[bool, typer.Option("--request", help="The request as JSON, readable.")] = False,
    response: Annotated[bool, typer.Option("--response", help="The reply as JSON, readable.")] = False,
    wire: Annotated[bool, typer.Option("--wire", help="The request's exact bytes.")] = False,
    wire_response: Annotated[bool, typer.Option("--wire-response", help="The reply's exact bytes.")] = False,
    statement: Annotated[
        bool, typer.Option("--statement", help="The statement that the model wrote, and its execution.")
    ] = False,
    nodes: Annotated[bool, typer.Option("--nodes", help="The nodes as they stood.")] = False,
    run: Annotated[str | None, typer.Option("--run", help="A run of the job; the newest one by default.")] = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Print what the model was shown at a turn.

    The whole prompt as text, or the part of the turn that an option names. It reads the archive alone.
    """
    flags = {
        Part.REQUEST: request,
        Part.RESPONSE: response,
        Part.WIRE: wire,
        Part.WIRE_RESPONSE: wire_response,
        Part.STATEMENT: statement,
        Part.NODES: nodes,
    }
    part = chosen_part({part for part, given in flags.items() if given})
    if json and part in RAW:
        raise InputError(f"--{part} prints exact bytes: it does not go with --json")
    wanted = parse_job_turn(job)
    from runtime.catalog import find_job
    from runtime.cli.showing import ShownTurn, nodes_text, prompt_text, statement_text
    from runtime.cli.stores import archive_of

    objects = archive_of(store)
    name = find_job(objects, wanted.job)
    turn = ShownTurn(name.archive(objects), str(name), run, wanted.turn)
    about = {"job": str(name), "run": turn.run, "turn": turn.turn}
    if part in RAW:
        raw(turn.wire() if part is Part.WIRE else turn.wire_response())
        if not turn.is_wire():
            note("these bytes went over no wire: they are what was handed to the provider and what it returned")
        return
    match part:
        case Part.PROMPT:
            segments = turn.prompt()
            value: Any = [segment.model_dump(mode="json") for segment in segments]
            text = prompt_text(segments)
        case Part.REQUEST:
            value = turn.request()
            text = pretty(value)
        case Part.RESPONSE:
            value = turn.response()
            text = pretty(value)
        case Part.STATEMENT:
            value = turn.statement()
            text = statement_text(value)
        case _:
            value = turn.nodes()
            text = nodes_text(value)
    if json:
        json_document({**about, str(part): value})
    else:
        say(text)


def chosen_part(given: set[Part]) -> Part:
    """The one part that was asked for; the prompt if none was.

    Raises:
        InputError: if more than one was.
    """
    if len(given) > 1:
        names = " and ".join(f"--{part}" for part in sorted(given))
        raise InputError(f"{names} cannot go together: each prints another part of the turn")
    return next(iter(given), Part.PROMPT)
