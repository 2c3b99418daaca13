"""Divergences as lines for people: the place, and below it the lines of both texts that differ."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from runtime.archive.divergences import divergences, replay_of
from runtime.archive.job import JobArchive
from runtime.archive.texts import Explained, Timeline, explained
from runtime.base.controls import clean
from runtime.cli.text import one_line

SHOWN_LINES = 4
"""Lines of each text that are shown of one divergence."""

SHOWN_CHARS = 160


def explained_in(archive: JobArchive, run: str) -> list[Explained]:
    """The divergences of the replay that ``run`` is or belongs to, with their texts."""
    replay = replay_of(archive, run)
    source = replay.order.get("source") if replay is not None else None
    differences = divergences(archive, run)
    if source is None:
        return [Explained(one, None, None) for one in differences]
    recorded = Timeline(JobArchive(archive.store, source["batch"], source["job"]), source["run"])
    now = Timeline(archive, run)
    return [explained(one, recorded, now) for one in differences]


def lines_of(one: Explained) -> Iterator[str]:
    """The difference in one line; where both texts are known, its place and what differs, ``-``
    recorded and ``+`` now.
    """
    if one.recorded is None or one.now is None or one.recorded == one.now:
        yield one_line(one.divergence.line())
        return
    yield f"{one_line(one.divergence.place)}:"
    before, after = _different(one.recorded.splitlines(), one.now.splitlines())
    yield from _signed("-", before)
    yield from _signed("+", after)


def _different(before: list[str], after: list[str]) -> tuple[list[str], list[str]]:
    """Both without the lines that they begin and end with alike."""
    first = _alike(before, after)
    before, after = before[first:], after[first:]
    last = _alike(before[::-1], after[::-1])
    return before[: len(before) - last], after[: len(after) - last]


def _alike(before: list[str], after: list[str]) -> int:
    return sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
    )


def _signed(sign: str, lines: list[str]) -> Iterator[str]:
    for line in lines[:SHOWN_LINES]:
        text = clean(line)
        yield f"  {sign} {text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + '…'}"
    if len(lines) > SHOWN_LINES:
        yield f"  {sign} … and {len(lines) - SHOWN_LINES} more lines"
