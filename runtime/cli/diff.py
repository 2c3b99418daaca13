"""``holdfast diff``: what changed between two prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.base.errors import InputError, NotFound
from runtime.cli.chosen import JobAtTurn, Run
from runtime.cli.options import Json, Store
from runtime.cli.output import json_document, note, say

if TYPE_CHECKING:
    from runtime.archive.forms import Step
    from runtime.archive.gaps import Gap
    from runtime.archive.inspect import Change, LayoutDifference
    from runtime.cli.showing import ShownTurn

_SIGNS = {"added": "+", "removed": "-", "changed": "~", "moved": ">"}
_SHOWN_BYTES = 400


def command(
    job: JobAtTurn,
    other: Annotated[
        str | None,
        typer.Argument(
            metavar="[JOB@B]", help="The later prompt. Without it: JOB@N and the turn before it."
        ),
    ] = None,
    text: Annotated[
        bool, typer.Option("--text", help="Also print the lines that changed.")
    ] = False,
    wire: Annotated[
        bool, typer.Option("--wire", help="Compare the exact bytes of the requests instead.")
    ] = False,
    run: Run = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Show what changed from one prompt to another.

    Segments added, removed, changed and moved, how much of the prefix stayed the same, and what
    broke it.
    """
    if wire and text:
        raise InputError(
            "--text and --wire cannot go together: each prints another kind of difference"
        )
    from runtime.cli.chosen import chosen_turn
    from runtime.cli.stores import archive_to_read

    objects = archive_to_read(store)
    first = chosen_turn(objects, job, run)
    before, after = (first, chosen_turn(objects, other, run)) if other else (_before(first), first)
    if wire:
        _wire(before, after, json)
        return
    compared = _compared(before, after)
    if json:
        json_document(compared.document())
    else:
        _tell(compared, text)


@dataclass(frozen=True)
class Compared:
    """Two prompts, how they differ, and what of them cannot be read. Where one follows the other:
    the statement between them, and the later one's step.
    """

    before: ShownTurn
    after: ShownTurn
    difference: LayoutDifference
    gaps: Sequence[Gap]
    cause: str | None
    step: Step | None

    def document(self) -> dict[str, Any]:
        """As JSON."""
        step = self.step
        prefix = None if step is None else step.prefix
        return {
            **_about(self.before, self.after),
            **difference_document(self.difference),
            "broken_by_statement": self.cause,
            "prefix": None if prefix is None else prefix.model_dump(mode="json"),
            "usage": None if step is None else step.usage.model_dump(mode="json"),
            "damaged": [gap.document() for gap in self.gaps],
        }


def _compared(before: ShownTurn, after: ShownTurn) -> Compared:
    from runtime.archive.inspect import diff_layouts

    difference = diff_layouts(before.prompt(), after.prompt())
    # The start of a run is both turns'.
    gaps = list(dict.fromkeys(gap for gap in (before.gap(), after.gap()) if gap is not None))
    # Where a prompt cannot be read whole, what is missing may be the cause.
    follows = _follows(before, after) and not gaps
    return Compared(
        before,
        after,
        difference,
        gaps,
        cause=_cause(before) if follows else None,
        step=after.archive.find_step(after.run, after.turn) if follows else None,
    )


def _tell(compared: Compared, text: bool) -> None:
    difference, name = compared.difference, compared.after.name
    for gap in compared.gaps:
        what = name if gap.turn is None else f"turn {gap.turn}"
        note(f"not all of {what} can be read: {gap}: run 'holdfast verify {name}'")
    say(f"{compared.before.address} -> {compared.after.address}")
    say(_prefix_line(difference))
    if difference.broken_by is not None:
        cause = compared.cause
        say(
            f"broken by: {_line(difference.broken_by)}"
            + (f"\n  after the statement: {cause}" if cause else "")
        )
    for line in _recorded_lines(compared.step):
        say(line)
    for change in difference.changes:
        say(f"{_SIGNS[change.kind]} {_line(change)}")
        if text:
            for line in _text_lines(change):
                say(f"    {line}")


def difference_document(difference: LayoutDifference) -> dict[str, Any]:
    """A difference as JSON."""
    from runtime.cli.segments import about

    def change(one: Change) -> dict[str, Any]:
        return {
            "kind": str(one.kind),
            "position_before": one.position_before,
            "position_after": one.position_after,
            "before": None if one.before is None else about(one.before),
            "after": None if one.after is None else about(one.after),
        }

    return {
        "stable_segments": difference.stable_segments,
        "stable_tokens": difference.stable_tokens,
        "tokens": difference.tokens,
        "stable_share": round(difference.stable_share, 4),
        "broken_by": None if difference.broken_by is None else change(difference.broken_by),
        "changes": [change(one) for one in difference.changes],
    }


def _before(turn: ShownTurn) -> ShownTurn:
    from runtime.archive.gaps import check_turns
    from runtime.cli.showing import ShownTurn

    if not turn.archive.has_turn(turn.run, turn.turn - 1):
        check_turns(turn.archive, turn.run, turn.turn - 1)
        raise NotFound(
            f"{turn.address} is the first turn of its run: name the two turns to compare"
        )
    return ShownTurn(turn.archive, turn.name, turn.run, turn.turn - 1)


def _cause(before: ShownTurn) -> str | None:
    """The statement that was executed between a prompt and the next one."""
    from runtime.cli.text import one_line

    source = before.statement()["statement"]
    return one_line(source)[:200] if source else None


def _follows(before: ShownTurn, after: ShownTurn) -> bool:
    return (before.name, before.run, before.turn + 1) == (after.name, after.run, after.turn)


def _recorded_lines(step: Step | None) -> list[str]:
    """What the step records of its prompt's prefix, beside what the provider reported."""
    if step is None or step.prefix is None:
        return []
    prefix, usage = step.prefix, step.usage
    lines = []
    if prefix.broken:
        lines.append(
            f"moved: {prefix.broken}; {prefix.reason or 'no reason was recorded'}; {prefix.lost:,}"
            f" tokens written to the cache anew, ${prefix.lost_usd:.4f} more than reading them"
        )
    told = (
        f"{usage.cache_read:,} read and {usage.cache_write:,} written of {usage.prompt:,}"
        if usage.reported
        else "nothing"
    )
    return [*lines, f"cache: {prefix.stable:,} tokens stood; the provider reports {told}"]


def _about(before: ShownTurn, after: ShownTurn) -> dict[str, Any]:
    return {
        side: {"job": turn.name, "run": turn.run, "turn": turn.turn}
        for side, turn in (("before", before), ("after", after))
    }


def _prefix_line(difference: LayoutDifference) -> str:
    return (
        f"stable prefix: {difference.stable_segments} segments, {difference.stable_tokens:,} of"
        f" {difference.tokens:,} tokens ({difference.stable_share:.1%})"
    )


def _line(change: Change) -> str:
    from runtime.cli.segments import first_words

    segment = change.after or change.before
    assert segment is not None
    places = [
        str(place) for place in (change.position_before, change.position_after) if place is not None
    ]
    tokens = f"{segment.tokens:,} tokens"
    if (
        change.before is not None
        and change.after is not None
        and change.before.tokens != change.after.tokens
    ):
        tokens = f"{change.before.tokens:,} -> {change.after.tokens:,} tokens"
    return (
        f"{change.kind:<7} {' -> '.join(places):>10}  {segment.role} · {segment.kind} ·"
        f" {segment.origin} · {tokens}  {first_words(segment)}"
    ).rstrip()


def _text_lines(change: Change) -> list[str]:
    old = change.before.text.splitlines() if change.before else []
    new = change.after.text.splitlines() if change.after else []
    # Without its two lines of file names; a line of a text may look like one of them.
    return list(unified_diff(old, new, lineterm="", n=1))[2:]


def _wire(before: ShownTurn, after: ShownTurn, json: bool) -> None:
    from runtime.archive.wire_changes import wire_changes

    old, new = before.wire(), after.wire()
    captured = {side: turn.is_wire() for side, turn in (("before", before), ("after", after))}
    changes = list(wire_changes(old, new))
    if json:
        listed = [
            {
                "old_start": change.old_start,
                "removed": change.removed.decode("utf-8", "backslashreplace"),
                "new_start": change.new_start,
                "added": change.added.decode("utf-8", "backslashreplace"),
            }
            for change in changes
        ]
        document = {
            **_about(before, after),
            "on_the_wire": captured,
            "old_bytes": len(old),
            "new_bytes": len(new),
            "changes": listed,
        }
        json_document(document)
        return
    for turn, seen in ((before, captured["before"]), (after, captured["after"])):
        if not seen:
            note(
                f"the bytes of {turn.address} went over no wire: they are what was handed to the"
                " provider"
            )
    say(f"{before.address} ({len(old):,} bytes) -> {after.address} ({len(new):,} bytes)")
    for change in changes:
        say(f"@ {change.old_start} -{len(change.removed)}  {change.new_start} +{len(change.added)}")
        for sign, data in (("-", change.removed), ("+", change.added)):
            if data:
                more = (
                    f" … {len(data) - _SHOWN_BYTES:,} bytes more"
                    if len(data) > _SHOWN_BYTES
                    else ""
                )
                say(f"{sign} {data[:_SHOWN_BYTES].decode('utf-8', 'backslashreplace')}{more}")
