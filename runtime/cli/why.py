"""``holdfast why``: where a text in a prompt came from."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime.cli.chosen import JobAtTurn, Run
from runtime.cli.options import Json, Store
from runtime.errors import NotFound


def command(
    job: JobAtTurn,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A text that stands in the prompt.")],
    run: Run = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Tell why a text stands in a prompt.

    Each part that holds it, with its event, statement or node and the turns that brought it in and last changed it.
    """
    from runtime.archive.gaps import Gap
    from runtime.archive.inspect import why
    from runtime.cli.blame import blamed, report
    from runtime.cli.chosen import chosen_turn
    from runtime.cli.stores import archive_to_read

    turn = chosen_turn(archive_to_read(store), job, run)
    gaps: list[Gap] = []
    found = why(blamed(turn, gaps), text)
    if not found:
        raise NotFound(f"{text!r} does not stand in the prompt of {turn.address}")
    report(turn, found, gaps, json)
