"""Since when each part of a prompt stands there, and what became of a text that does not stand
there any more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from runtime.archive.changes import LayoutChange, Standing, layout_changes, segment_of
from runtime.archive.gaps import Gap
from runtime.archive.inspect import Blame, says, why
from runtime.archive.job import JobArchive
from runtime.base.errors import NotFound
from runtime.projection.segments import Segment, SegmentKind

Wanted = Callable[[bytes], bool]
"""Whether a segment is to be made of a line."""

_NODE = "node:"
_CALLS = b'"tool_calls":'
_NEVER_ESCAPED = re.compile(r"[0-9A-Za-z _.,:;()\[\]{}*#-]+")
"""Characters that models write into JSON as they are: some escape those of HTML, too."""
_OF_NODES = frozenset({SegmentKind.VIEW, SegmentKind.GROUP, SegmentKind.NOTE})


def blame(
    archive: JobArchive, run: str, turn: int, gaps: list[Gap], text: str = ""
) -> tuple[Blame, ...]:
    """The blame of a turn's prompt, or of what says ``text`` in it; ``gaps`` gets the turns before
    whose prompts cannot be read.

    Raises:
        NotFound, ObjectCorrupt, ObjectMissing: if that prompt itself cannot be read.
    """
    standing, last = Standing(), None
    for last in layout_changes(archive, run, turn, gaps):
        standing.apply(last)
    check_reached(archive, run, turn, last)
    key = last.attempt if last is not None else ""
    return why(blame_of(standing, key, _may_say(text)), text)


def check_reached(archive: JobArchive, run: str, turn: int, last: LayoutChange | None) -> None:
    """The walk came to ``turn``. Where it did not, reading that prompt by itself says why."""
    if last is None or last.turn != turn:
        archive.turn_layout(run, turn)
        raise NotFound(f"the archive has no turn {turn} of run {run}")


def blame_of(standing: Standing, key: str, wanted: Wanted) -> tuple[Blame, ...]:
    """The blame of the prompt that attempt ``key`` showed: of the ``wanted`` lines, for making
    segments of all takes a good part of a walk's time.
    """
    return tuple(
        Blame(
            segment_of(line, key),
            position,
            standing.sources[standing.source(line)],
            standing.texts[line],
        )
        for position, line in enumerate(standing.lines)
        if wanted(line)
    )


@dataclass(frozen=True)
class Left:
    """A segment that left the prompts: shown from turn ``first`` to ``last``, then at ``position``
    of the prompt of ``attempt``, and not in that of turn ``gone``, which attempt ``gone_from``
    showed.
    """

    segment: Segment
    first: int
    last: int
    position: int
    attempt: str
    gone: int
    gone_from: str


def left(
    archive: JobArchive, run: str, turn: int, text: str, gaps: list[Gap]
) -> tuple[tuple[Left, ...], tuple[Blame, ...]]:
    """What held ``text`` and is gone from the prompt of ``turn``, the newest of each kind and
    origin, in the order in which they went; and what holds it there still.

    Raises:
        NotFound, ObjectCorrupt, ObjectMissing: if that prompt itself cannot be read.
    """
    return left_where(
        archive, run, turn, lambda segment: says(segment, text), gaps, wanted=_may_say(text)
    )


def left_nodes(archive: JobArchive, run: str, turn: int, gaps: list[Gap]) -> tuple[Left, ...]:
    """The nodes that prompts before that of ``turn`` showed on their own and it does not, in the
    order in which they went.
    """

    def shows_a_node(segment: Segment) -> bool:
        return segment.kind in _OF_NODES and segment.origin.startswith(_NODE)

    return left_where(archive, run, turn, shows_a_node, gaps, wanted=_names_a_node)[0]


def left_where(
    archive: JobArchive,
    run: str,
    turn: int,
    holds: Callable[[Segment], bool],
    gaps: list[Gap],
    *,
    wanted: Wanted,
) -> tuple[tuple[Left, ...], tuple[Blame, ...]]:
    """``left`` for segments that ``holds`` is true of.

    The lines in which they are stored are ``wanted``.
    """
    standing, before = Standing(), None
    went: dict[tuple[str, str], tuple[bytes, Left]] = {}
    for change in layout_changes(archive, run, turn, gaps):
        holding = [(n, line) for n, line in enumerate(change.removed) if wanted(line)]
        since = {line: standing.texts[line] for _, line in holding}
        standing.apply(change)
        for number, line in holding:
            # It may only have moved, or stand there a second time.
            if before is not None and line not in standing.texts:
                segment = segment_of(line, before.attempt)
                if holds(segment):
                    source = (segment.kind, segment.origin)
                    # What comes back and goes again is told of its last going, in the order of
                    # that.
                    went.pop(source, None)
                    place = change.start + number
                    leaving = Left(
                        segment,
                        since[line],
                        before.turn,
                        place,
                        before.attempt,
                        change.turn,
                        change.attempt,
                    )
                    went[source] = line, leaving
        before = change
    check_reached(archive, run, turn, before)
    gone = tuple(leaving for line, leaving in went.values() if line not in standing.texts)
    key = before.attempt if before is not None else ""
    still = tuple(one for one in blame_of(standing, key, wanted) if holds(one.segment))
    sources = {(one.segment.kind, one.segment.origin) for one in still}
    return (
        tuple(one for one in gone if (one.segment.kind, one.segment.origin) not in sources),
        still,
    )


def _may_say(text: str) -> Wanted:
    """Whether the segment of a line may say a text. It stands there as the canonical JSON of a
    string writes it; in a call's arguments as the JSON that a model wrote, and that once more.
    """
    written = json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    plain = [stretch.encode() for stretch in _NEVER_ESCAPED.findall(text)]
    return lambda line: (
        written in line or (_CALLS in line and all(stretch in line for stretch in plain))
    )


def _names_a_node(line: bytes) -> bool:
    return _NODE.encode() in line
