"""What of a run cannot be read, and all that can: a step that is missing or damaged hides no other
turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from runtime.archive import keys
from runtime.archive.forms import End, Step
from runtime.archive.reader import JobReader
from runtime.base.errors import ObjectCorrupt, ObjectMissing

UNREADABLE = (ObjectCorrupt, ObjectMissing)
"""What reading one damaged or missing object raises; a store that cannot be reached raises
something else.
"""

_NAMED = re.compile(r"(?:the archive has no object )?([^\s:]+/[^\s:]+)")
"""The key with which the text of such an error begins: keys have neither white space nor colons."""


@dataclass(frozen=True)
class Gap:
    """An object that cannot be read, and why. ``turn`` is None for what belongs to no turn."""

    turn: int | None
    key: str
    problem: str

    def __str__(self) -> str:
        return f"{self.key} {self.problem}"

    def document(self) -> dict[str, object]:
        """As JSON."""
        return {"turn": self.turn, "key": self.key, "problem": self.problem}


@dataclass
class Readable:
    """The steps of a run that can be read, in turn order; its end, if it has one; and the
    ``gaps``.
    """

    steps: list[Step] = field(default_factory=list)
    end: End | None = None
    gaps: list[Gap] = field(default_factory=list)

    @property
    def missing_end(self) -> bool:
        """The run has an end that cannot be read."""
        return any(gap.turn is None and keys.is_end(gap.key) for gap in self.gaps)

    def missing(self, turn: int) -> Gap | None:
        """What cannot be read of a turn."""
        return next((gap for gap in self.gaps if gap.turn == turn), None)


def gap_of(error: Exception, key: str, turn: int | None = None) -> Gap:
    """The gap where reading ``key`` raised ``error``."""
    words = (
        "is not there" if isinstance(error, ObjectMissing) else str(error).removeprefix(f"{key}: ")
    )
    return Gap(turn, key, words if words == "is not there" else f"is damaged: {words}")


def named_gap(error: Exception, turn: int | None = None) -> Gap:
    """The gap where reading an object raised ``error``, whose text names the object first."""
    named = _NAMED.match(str(error))
    return gap_of(error, named[1] if named is not None else "", turn)


def readable(archive: JobReader, run: str) -> Readable:
    """All of a run, and of the runs that it started from, that can be read.

    Raises:
        ObjectCorrupt: if of one of these runs neither the start nor the first turn can be read, so
            that nobody knows which turns are the run's.
        ArchiveError: if the store cannot be read.
    """
    reading = Readable()
    end_key = keys.end_key(archive.prefix, run)
    try:
        reading.end = archive.end(run)
    except ObjectCorrupt as error:
        reading.gaps.append(gap_of(error, end_key))
    reading.gaps += start_gaps(archive, run)
    for turn, key, there in _steps(archive, run, reading.end):
        if not there:
            reading.gaps.append(Gap(turn, key, "is not there"))
            continue
        try:
            reading.steps.append(archive.step_at(key))
        except UNREADABLE as error:
            reading.gaps.append(gap_of(error, key, turn))
    reading.gaps.sort(key=lambda gap: (gap.turn is None, gap.turn or 0))
    return reading


def check_turns(archive: JobReader, run: str, turn: int | None = None) -> None:
    """See that each turn of a run that has, or should have, a step can be read; with ``turn``, that
    one.

    Raises:
        ObjectCorrupt: for the first that cannot.
    """
    for gap in readable(archive, run).gaps:
        if gap.turn is not None and turn in {None, gap.turn}:
            name = unquote(archive.prefix)
            raise ObjectCorrupt(
                f"turn {gap.turn} of {name} cannot be read: {gap}: run 'holdfast verify {name}'"
            )


def start_gaps(archive: JobReader, run: str) -> list[Gap]:
    """The starts that cannot be read, of the run and of those that it goes back to."""
    try:
        gaps = [start_gap(archive, span.prefix) for span in archive.lineage.spans(run)]
    except ObjectCorrupt as error:
        return [named_gap(error)]
    return [gap for gap in gaps if gap is not None]


def start_gap(archive: JobReader, prefix: str) -> Gap | None:
    """What is the matter with the start of the run whose turns stand under ``prefix``, if it cannot
    be read.
    """
    key = keys.run_key_of(prefix)
    try:
        archive.lineage.start(key)
    except ObjectCorrupt as error:
        return gap_of(error, key)
    except ObjectMissing as error:
        # A start is written before the first call: before that, there is none.
        return None if archive.first_attempt(prefix) is None else gap_of(error, key)
    return None


def unknown_starts(archive: JobReader, runs: Sequence[str]) -> list[Gap]:
    """The starts that cannot be read, and without which nobody knows how a job with these ``runs``,
    oldest first, stands: its newest run's, and those of runs that may be newer.
    """
    newest = runs[-1:]
    undated = [run for run in runs[:-1] if archive.began(run) is None]
    gaps = (start_gap(archive, keys.run_prefix(archive.prefix, run)) for run in (*newest, *undated))
    return [gap for gap in gaps if gap is not None]


def _steps(archive: JobReader, run: str, end: End | None) -> Iterator[tuple[int, str, bool]]:
    """Each turn that has, or should have, a step: its key, and whether it is there.

    One in flight should not.
    """
    turns: dict[int, str | None] = {}
    for key, place in archive.lineage.places(run):
        if place.kind in {"attempt", "step"}:
            turns[place.turn] = key if place.kind == "step" else turns.get(place.turn)
    spans = archive.lineage.spans(run)
    last = (
        keys.parse_turn_key(end.parent.key) if end is not None and end.parent is not None else None
    )
    answered = [turn for turn, key in turns.items() if key is not None]
    # The last attempt may be in flight and owes no step; one before it must have been answered.
    stop = max([*answered, *([last.turn] if last is not None else []), max(turns, default=1) - 1])
    # A run whose start was not written begins at 0 for its lineage.
    start = spans[0].first or min(turns, default=1)
    for turn in range(start, stop + 1):
        of = next((span for span in spans if span.holds(turn)), spans[-1])
        step = turns.get(turn)
        yield turn, step or keys.step_key_in(of.prefix, turn), step is not None
