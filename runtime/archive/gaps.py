"""What of a run cannot be read, and all that can: a step that is missing or damaged hides no other
turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from runtime.archive import keys
from runtime.archive.forms import End, Step
from runtime.archive.reader import JobReader
from runtime.base.errors import ObjectCorrupt, ObjectMissing

UNREADABLE = (ObjectCorrupt, ObjectMissing)
"""What reading one damaged or missing object raises; a store that cannot be reached raises
something else.
"""


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


def readable(archive: JobReader, run: str) -> Readable:
    """All of a run, and of the runs that it started from, that can be read.

    Raises:
        ObjectCorrupt: if the start of one of these runs is damaged, so that nobody knows which
            turns are the run's.
        ArchiveError: if the store cannot be read.
    """
    reading = Readable()
    end_key = keys.end_key(archive.prefix, run)
    try:
        reading.end = archive.end(run)
    except ObjectCorrupt as error:
        reading.gaps.append(gap_of(error, end_key))
    if (start := _lost_start(archive, run)) is not None:
        reading.gaps.append(Gap(None, start, "is not there"))
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


def _lost_start(archive: JobReader, run: str) -> str | None:
    """The key of the start that is gone, of the run or of one that it goes back to: a start is
    written before the first call.
    """
    # A run whose start was not written begins at 0 for its lineage.
    first = archive.lineage.spans(run)[0]
    called = first.first == 0 and archive.first_attempt(first.prefix) is not None
    return keys.run_key_of(first.prefix) if called else None


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
