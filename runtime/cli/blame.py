"""``holdfast blame``: since when each part of a prompt stands there, and which statement wrote each
line of a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.base.errors import InputError
from runtime.cli.chosen import JobAtTurn, Run
from runtime.cli.options import Json, Store
from runtime.cli.output import json_document, note, say_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.archive.gaps import Gap
    from runtime.archive.inspect import Blame
    from runtime.cli.showing import ShownTurn


def command(
    job: JobAtTurn,
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH[:FROM[-TO]]",
            help="A file of the job's workspace, and lines of it: who wrote them.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[
        bool,
        typer.Option(
            "--show", help="With a PATH: what the model was shown when it wrote those lines."
        ),
    ] = False,
    run: Run = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Tell where a prompt's parts, or a file's lines, came from.

    Of a prompt: the event, statement or node, the turn that brought it in, and the turn that last
    changed its text. Of a file as it was after the turn: for each line the turn whose statement
    wrote it, and that statement's first line ('base': the job began with it). Files that were moved
    are followed.
    """
    if path is not None:
        _blame_lines(job, path, show, run, store, json)
        return
    if show:
        raise InputError("--show is of lines of a file: name its PATH, and lines of it")
    from runtime.archive.blame import blame
    from runtime.cli.chosen import chosen_turn
    from runtime.cli.stores import archive_to_read

    turn = chosen_turn(archive_to_read(store), job, run)
    gaps: list[Gap] = []
    report(turn, blame(turn.archive, turn.run, turn.turn, gaps), gaps, json)


def _blame_lines(
    job: str, path: str, show: bool, run: str | None, store: str | None, json: bool
) -> None:
    from runtime.cli.show import command as show_turn
    from runtime.cli.workspace.lines import blamed_lines, report, the_turn

    lines = blamed_lines(job, path, run, store)
    if show:
        name, turn = lines.at.of.name, the_turn(lines)
        show_turn(job=f"{name}@{turn}", run=lines.at.of.run, store=store, json=json)
    else:
        report(lines, json)


def report(turn: ShownTurn, blames: Sequence[Blame], gaps: Sequence[Gap], json: bool) -> None:
    """Print blames, as JSON or as lines; what came in at a turn that cannot be read seems to come
    from the next one.
    """
    from runtime.cli.segments import about, first_words

    sources = source_names(turn)
    for gap in () if json else gaps:
        note(f"turn {gap.turn} is left out: {gap}: run 'holdfast verify {turn.name}'")
    if json:
        rows: list[dict[str, Any]] = [
            {
                "position": one.position,
                **about(one.segment),
                "source": sources.get(one.segment.origin),
                "introduced": one.introduced,
                "changed": one.changed,
            }
            for one in blames
        ]
        json_document(
            {
                "job": turn.name,
                "run": turn.run,
                "turn": turn.turn,
                "segments": rows,
                "damaged": [gap.document() for gap in gaps],
            }
        )
        return
    lines = []
    for one in blames:
        name = sources.get(one.segment.origin)
        origin = one.segment.origin + (f" ({name})" if name else "")
        changed = f", changed in turn {one.changed}" if one.changed != one.introduced else ""
        lines.append(
            f"{one.position:>4}  {one.segment.kind} · {origin}  in since turn"
            f" {one.introduced}{changed}  {first_words(one.segment)}".rstrip()
        )
    say_all(lines)


def source_names(turn: ShownTurn) -> dict[str, str]:
    """The path of each view, by the origin of its segments; none where the nodes cannot be read."""
    from runtime.archive.gaps import UNREADABLE

    try:
        nodes = turn.nodes()
    except UNREADABLE as error:
        note(f"the views' paths are left out: {error}")
        return {}
    return {
        f"node:{obj_id}": str(state["path"]) for obj_id, state in nodes.items() if state.get("path")
    }
