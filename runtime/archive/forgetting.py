"""What a job's prompts do not show any more, as its archive tells it: when, by which condensation,
and what stands there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from runtime.archive.forms import End
from runtime.archive.forms.told import turn_of
from runtime.archive.gaps import UNREADABLE, Readable, readable
from runtime.archive.job import JobArchive
from runtime.base.values import StepRef
from runtime.job.condensed import CondensationOutcome
from runtime.projection.segments import Segment, SegmentKind


@dataclass(frozen=True)
class Forgetting:
    """A condensation of a run, which took effect before the call of ``turn``.

    ``parent`` is the last step before it.

    ``turns`` are the first and the last turn whose events it forgot, those behind a forgotten
    summary included. ``sent`` is False where no prompt was sent that was made after it: before a
    run's end there may be none.
    """

    turn: int
    condensation: CondensationOutcome
    parent: StepRef | None
    turns: tuple[int, int]
    sent: bool = True

    def is_in(self, layout: Iterable[Segment]) -> bool:
        """Whether a prompt of its turn was made after it: one that was refused may not be."""
        gone = {f"event:{event_id}" for event_id in self.condensation.forgotten}
        return not any(segment.origin in gone for segment in layout)


@dataclass(frozen=True)
class Gone:
    """A forgotten event, and the segment that showed it; None if it had none of its own, or no
    prompt showed it.
    """

    event_id: str
    segment: Segment | None


def forgettings(archive: JobArchive, run: str) -> Iterator[Forgetting]:
    """The condensations of a run, with those of the runs that it started from, in order; as far as
    they can be read.
    """
    return forgettings_in(archive, readable(archive, run))


def forgettings_in(archive: JobArchive, held: Readable) -> Iterator[Forgetting]:
    """``forgettings`` of a run that was read."""
    spans: dict[str, tuple[int, int]] = {}
    for holder in (*held.steps, *(() if held.end is None else (held.end,))):
        for condensation in holder.condensations:
            inner = [
                spans.get(event_id, (turn_of(event_id),) * 2) for event_id in condensation.forgotten
            ]
            turns = min(first for first, _ in inner), max(last for _, last in inner)
            if condensation.stands_in is not None:
                spans[condensation.stands_in] = turns
            told = Forgetting(turn_of(condensation.id), condensation, holder.parent, turns)
            if isinstance(holder, End):
                told = replace(told, sent=_was_sent(archive, told, holder.run))
            yield told


def _was_sent(archive: JobArchive, told: Forgetting, run: str) -> bool:
    """Whether an attempt at the turn was made after it; also where one cannot be read."""
    try:
        attempts = archive.attempts_of(run, told.turn)
        return any(told.is_in(archive.attempt_layout(attempt.key)) for attempt in attempts)
    except UNREADABLE:
        return True


def forgotten_segments(archive: JobArchive, run: str, forgetting: Forgetting) -> tuple[Gone, ...]:
    """The forgotten events, each with the segment of the last prompt that showed it."""
    layout = archive.layout(forgetting.parent)
    reply = archive.reply_segment(forgetting.parent)
    shown = (*layout, reply) if reply is not None else layout
    own = {segment.origin: segment for segment in shown if segment.origin.startswith("event:")}
    replies = {segment.origin: segment for segment in shown if segment.kind is SegmentKind.REPLY}
    # Replies that stand there still were not among what was forgotten.
    step = archive.find_step(run, forgetting.turn)
    for segment in archive.layout(step.ref) if step is not None else ():
        replies.pop(segment.origin, None)
    # A reply's segment is that of its statement: of its turn's events, the first without a segment
    # of its own.
    return tuple(
        Gone(
            event_id,
            own.get(f"event:{event_id}") or replies.pop(f"statement:{turn_of(event_id)}", None),
        )
        for event_id in forgetting.condensation.forgotten
    )


def standing_text(archive: JobArchive, run: str, forgetting: Forgetting) -> str | None:
    """What stands in place of the forgotten events; None if nothing does, or no prompt was made
    with it.
    """
    condensation = forgetting.condensation
    if condensation.stands_in is None:
        return None
    step = archive.find_step(run, forgetting.turn)
    layout: Sequence[Segment] = archive.layout(step.ref) if step is not None else ()
    shown = next(
        (segment.text for segment in layout if segment.origin == f"event:{condensation.stands_in}"),
        None,
    )
    if shown is not None or condensation.summary is None:
        return shown
    return archive.step(condensation.summary).reply.text.strip()
