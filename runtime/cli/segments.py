"""A prompt's segments as a table: what each is, where it came from, and where it stands in the wire
request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from runtime.archive.inspect import locate
from runtime.base.redaction.marks import count_marks
from runtime.projection.segments import Segment

if TYPE_CHECKING:
    from runtime.cli.showing import ShownTurn

_WORDS_CHARS = 80


def segment_rows(turn: ShownTurn) -> list[dict[str, Any]]:
    """One row a segment.

    ``wire`` is [start, stop) in the wire request, null where the text cannot be found there.
    """
    layout = turn.prompt()
    places = locate(turn.wire(), layout)
    return [
        {
            "position": position,
            **about(segment),
            "wire": None if place is None else [place.start, place.stop],
        }
        for position, (segment, place) in enumerate(zip(layout, places, strict=True))
    ]


def about(segment: Segment) -> dict[str, Any]:
    """What a segment is, without its text. ``masked`` counts the values that were masked in it."""
    return {
        "kind": str(segment.kind),
        "origin": segment.origin,
        "role": str(segment.role),
        "tokens": segment.tokens,
        "masked": count_marks(segment.text),
        "digest": segment.digest,
    }


def segments_text(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a table."""
    width = max((len(row["origin"]) for row in rows), default=0)
    lines = [
        f"{row['position']:>4}  {row['role']:<9}  {row['kind']:<8}  {row['origin']:<{width}} "
        f" {row['tokens']:>7,} tokens  {_bytes(row['wire']):>21} "
        f" {row['digest']}{_masked(row['masked'])}"
        for row in rows
    ]
    total = sum(row["tokens"] for row in rows)
    return "\n".join([*lines, f"{len(rows)} segments, {total:,} tokens"])


def first_words(segment: Segment) -> str:
    """The segment's first line, or what it calls."""
    from runtime.cli.text import one_line, shortened

    text = segment.text.lstrip().partition("\n")[0] or " ".join(
        call.arguments for call in segment.tool_calls
    )
    return shortened(one_line(text), _WORDS_CHARS)


def _bytes(place: list[int] | None) -> str:
    return "not found in wire" if place is None else f"bytes {place[0]}-{place[1]}"


def _masked(count: int) -> str:
    return f"  {count} masked" if count else ""
