"""``holdfast why``: where a text in a prompt came from, or what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.base.errors import InputError, NotFound
from runtime.cli.chosen import JobAtTurn, Run
from runtime.cli.options import Json, Store
from runtime.cli.output import json_document, note, say

if TYPE_CHECKING:
    from runtime.archive.blame import Left
    from runtime.archive.causes import Cause
    from runtime.archive.gaps import Gap
    from runtime.archive.inspect import Blame
    from runtime.cli.showing import ShownTurn


def command(
    job: JobAtTurn,
    text: Annotated[
        str,
        typer.Argument(metavar="TEXT", help="A text that stands in the prompt, or stood in one."),
    ],
    gone: Annotated[
        bool,
        typer.Option(
            "--gone", help="Tell of what held the text and does not stand in the prompt any more."
        ),
    ] = False,
    run: Run = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Tell why a text stands in a prompt, or no longer does.

    It tells each part that holds it, with its event, statement or node and the turns that brought
    it in and last changed it. With --gone, each part that held it: when it was last shown, what
    took it out, and where the archive has it.
    """
    from runtime.archive.blame import blame
    from runtime.cli.blame import report
    from runtime.cli.chosen import chosen_turn
    from runtime.cli.stores import archive_to_read

    if not text:
        raise InputError("expected a text to look for, got '': every part of a prompt holds that")
    turn = chosen_turn(archive_to_read(store), job, run)
    gaps: list[Gap] = []
    if gone:
        _gone(turn, text, gaps, json)
        return
    parts = blame(turn.archive, turn.run, turn.turn, gaps, text)
    if not parts:
        raise NotFound(
            f"{text!r} does not stand in the prompt of {turn.address}; --gone looks in the prompts"
            " before it"
        )
    report(turn, parts, gaps, json)


def _gone(turn: ShownTurn, text: str, gaps: list[Gap], json: bool) -> None:
    from runtime.archive.blame import left
    from runtime.archive.causes import causes

    went, still = left(turn.archive, turn.run, turn.turn, text, gaps)
    for gap in () if json else gaps:
        note(f"turn {gap.turn} is left out: {gap}: run 'holdfast verify {turn.name}'")
    if not went:
        stands = (
            f"{text!r} still stands in the prompt of {turn.address}: 'holdfast why' without --gone"
            " tells since when"
        )
        raise NotFound(
            stands
            if still
            else f"{text!r} stood in no prompt of {turn.name} up to turn {turn.turn}"
        )
    told = causes(turn.archive, turn.run, went)
    if json:
        json_document(
            _document(
                turn, [_row(one, cause) for one, cause in zip(went, told, strict=True)], still, gaps
            )
        )
        return
    for one, cause in zip(went, told, strict=True):
        say(_lines(turn, one, cause))
    if still:
        where = ", ".join(f"{one.segment.kind} · {one.segment.origin}" for one in still)
        say(f"the text still stands in the prompt of {turn.address} in {where}")


def _document(
    turn: ShownTurn, rows: list[dict[str, Any]], still: tuple[Blame, ...], gaps: list[Gap]
) -> dict[str, Any]:
    return {
        "job": turn.name,
        "run": turn.run,
        "turn": turn.turn,
        "gone": rows,
        "still": [{"position": one.position, "origin": one.segment.origin} for one in still],
        "damaged": [gap.document() for gap in gaps],
    }


def _row(one: Left, cause: Cause) -> dict[str, Any]:
    from runtime.cli.segments import about

    return {
        **about(one.segment),
        "first_shown": one.first,
        "last_shown": one.last,
        "gone_in": one.gone,
        "cause": cause.why,
        "told": cause.told,
        "instead": about(cause.instead) if cause.instead is not None else None,
        "archived": {
            "attempt": one.attempt,
            "position": one.position,
            "digest": one.segment.digest,
        },
    }


def _lines(turn: ShownTurn, one: Left, cause: Cause) -> str:
    from runtime.cli.segments import first_words

    first, last = one.first, one.last
    shown = f"shown in turn {last}" if first == last else f"shown in turns {first}-{last}"
    lines = [
        f"{one.segment.kind} · {one.segment.origin}  {shown}, gone in turn {one.gone} "
        f" {first_words(one.segment)}".rstrip(),
        f"  {cause.why}: {cause.told}",
    ]
    if cause.instead is not None:
        lines.append(
            f"  there now: {cause.instead.kind} · {cause.instead.origin} "
            f" {first_words(cause.instead)}".rstrip()
        )
    lines.append(
        f"  still archived: part {one.position} of 'holdfast show {turn.name}@{last}', in"
        f" {one.attempt}"
    )
    return "\n".join(lines)
