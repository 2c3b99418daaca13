"""Condensations as ``holdfast log`` and ``holdfast show`` tell them: what was forgotten when, and
what stands there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from runtime.cli.segments import first_words
from runtime.cli.text import one_line

if TYPE_CHECKING:
    from runtime.archive.forgetting import Forgetting
    from runtime.cli.showing import ShownTurn


def condensation_row(told: Forgetting) -> dict[str, Any]:
    """A condensation as JSON, all fields written out: what came of it, its turn, and the turns
    whose events it forgot.
    """
    condensation = told.condensation
    return {
        "id": condensation.id,
        "turn": told.turn,
        "condenser": condensation.condenser,
        "reason": condensation.reason,
        "forgotten": list(condensation.forgotten),
        "unknown": list(condensation.unknown),
        "forgotten_turns": list(told.turns),
        "sent": told.sent,
        "stands_in": condensation.stands_in,
        "summary": condensation.summary.model_dump(mode="json")
        if condensation.summary is not None
        else None,
        "failures": list(condensation.failures),
        "tokens": {
            "prompt": condensation.usage.prompt,
            "completion": condensation.usage.completion,
        },
        "cost_usd": condensation.cost_usd,
    }


def condensation_line(row: dict[str, Any]) -> str:
    """``condensed 10.c1: llm_summary (tokens) forgot 14 events of turns 1-6; event:10.c1-summary
    stands there``.
    """
    stands = (
        f"event:{row['stands_in']} stands in their place"
        if row["stands_in"]
        else "nothing stands in their place"
    )
    line = (
        f"condensed {row['id']}: {row['condenser']} ({row['reason']}) forgot"
        f" {len(row['forgotten'])} event{'s' * (len(row['forgotten']) != 1)} of {_turns(row)};"
        f" {stands}"
    )
    if not row["sent"]:
        line += "; no call was made with it"
    if row["unknown"]:
        line += f"; it named what was not there: {', '.join(map(one_line, row['unknown']))}"
    if row["tokens"]["prompt"] or row["tokens"]["completion"]:
        line += (
            f"; {row['tokens']['prompt']:,}+{row['tokens']['completion']:,} tokens,"
            f" ${row['cost_usd']:.4f}"
        )
    if row["failures"]:
        why = ", ".join(
            f"{one_line(fault)} ({times}x)" for fault, times in Counter(row["failures"]).items()
        )
        line += (
            f"; {'an extract, since' if row['summary'] is None else 'after'} failed summaries:"
            f" {why}"
        )
    return line


def forgotten_rows(turn: ShownTurn) -> list[dict[str, Any]]:
    """What the prompt of a turn does not show any more, in the order in which it went (``by`` says
    how).

    By condensation, each event with what it said first; by group, each node that the group now
    shows in short.
    """
    return sorted([*_condensed_rows(turn), *_grouped_rows(turn)], key=lambda row: row["turn"])


def _grouped_rows(turn: ShownTurn) -> list[dict[str, Any]]:
    from runtime.archive.blame import left_nodes
    from runtime.archive.causes import Why, causes

    gone = left_nodes(turn.archive, turn.run, turn.turn, [])
    rows: dict[tuple[int, str], dict[str, Any]] = {}
    for one, cause in zip(gone, causes(turn.archive, turn.run, gone), strict=True):
        if cause.why is not Why.GROUP or cause.instead is None:
            continue
        group = cause.instead.origin.removeprefix("node:")
        row = rows.setdefault(
            (one.gone, group), {"by": "group", "turn": one.gone, "group": group, "nodes": []}
        )
        row["nodes"].append(
            {
                "node": one.segment.origin.removeprefix("node:"),
                "kind": str(one.segment.kind),
                "last_shown": one.last,
                "tokens": one.segment.tokens,
                "digest": one.segment.digest,
                "begins": first_words(one.segment),
            }
        )
    return list(rows.values())


def _condensed_rows(turn: ShownTurn) -> list[dict[str, Any]]:
    from runtime.archive.forgetting import forgotten_segments, standing_text

    rows = []
    for told in _forgotten_by(turn):
        gone = forgotten_segments(turn.archive, turn.run, told)
        events = [
            {
                "event": one.event_id,
                "kind": str(one.segment.kind) if one.segment else None,
                "tokens": one.segment.tokens if one.segment else None,
                "digest": one.segment.digest if one.segment else None,
                "begins": first_words(one.segment) if one.segment else None,
            }
            for one in gone
        ]
        text = standing_text(turn.archive, turn.run, told)
        rows.append(
            {"by": "condensation", **condensation_row(told), "events": events, "text": text}
        )
    return rows


def forgotten_text(rows: Iterable[dict[str, Any]]) -> str:
    """``forgotten_rows`` as text: a condensation's line, its events, a line each, and what stands
    there; or a group's and its nodes.
    """
    parts: list[str] = []
    for row in rows:
        if row["by"] == "group":
            parts.append(
                f"before turn {row['turn']}: {row['group']} shows in short what stood there on"
                " its own"
            )
            parts.extend(
                f"  {one['node']:<8} {one['kind']:<8} {one['tokens']:>7,} tokens  {one['begins']}"
                for one in row["nodes"]
            )
            continue
        parts.append(f"before turn {row['turn']}: {condensation_line(row)}")
        parts.extend(
            f"  {one['event']:<8} {one['kind'] or '':<8} "
            + (
                f"{one['tokens']:>7,} tokens  {one['begins']}"
                if one["kind"]
                else "(nothing of its own in a prompt)"
            )
            for one in row["events"]
        )
        if row["text"] is not None:
            parts.append(f"  {row['stands_in']} says:")
            parts.extend(f"    {line}" for line in row["text"].splitlines())
    return "\n".join(parts) or "nothing was forgotten"


def notes_of(turn: ShownTurn) -> tuple[dict[str, str], list[str]]:
    """What a prompt's text says beside its segments: by origin, what a summary stands for; and what
    left nothing behind.
    """
    standing: dict[str, str] = {}
    without: list[str] = []
    for told in _forgotten_by(turn):
        row = condensation_row(told)
        if told.condensation.stands_in is None:
            without.append(f"before turn {told.turn}: {condensation_line(row)}")
        else:
            standing[f"event:{told.condensation.stands_in}"] = (
                f"for {_turns(row)}, condensed {row['id']} ({row['condenser']})"
            )
    return standing, without


def _forgotten_by(turn: ShownTurn) -> Iterator[Forgetting]:
    """The condensations after which the prompt of a turn was made."""
    from runtime.archive.forgetting import forgettings

    for told in forgettings(turn.archive, turn.run):
        if told.turn > turn.turn:
            break
        if told.turn < turn.turn or told.is_in(turn.prompt()):
            yield told


def _turns(row: dict[str, Any]) -> str:
    first, last = row["forgotten_turns"]
    return f"turn {first}" if first == last else f"turns {first}-{last}"
