"""A finished turn as a replay needs it: the reply, and what came of it, which the record after the
turn holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from runtime.archive import keys
from runtime.archive.container import ArchivedObject
from runtime.archive.forms import End, Step
from runtime.archive.job import JobArchive
from runtime.archive.lineage import Span, newest_first
from runtime.archive.without_model import origin_of
from runtime.base.effect_numbers import is_prepared
from runtime.base.errors import NotFound, ObjectMissing
from runtime.projection.segments import SegmentKind


@dataclass(frozen=True)
class TurnRecord:
    """A step and what followed.

    ``after`` is the next step or the end of the run, None if neither is there.
    """

    step: Step
    after: Step | End | None

    @property
    def at(self) -> float:
        """When the reply was archived, in seconds since 1970."""
        return replied_at(self.step)

    @property
    def execution(self) -> dict[str, Any] | None:
        """The execution of the turn's statement."""
        return self.after.execution if self.after is not None else None

    @property
    def executed(self) -> dict[str, Any] | None:
        """The execution; None of a turn without one, of which a replay tells divergences alone."""
        execution = self.execution
        if execution is not None and execution.keys() == {"divergences"}:
            return None
        return execution

    @property
    def whole(self) -> bool:
        """Whether the statement was executed, and no turn began after it that came to no call: what
        that changed is told with the statement's.
        """
        if not isinstance(self.after, End):
            return True
        return self.after.turn == self.step.turn and self.executed is not None

    @property
    def nodes(self) -> tuple[dict[str, Any], ...] | None:
        """The states of the nodes that changed until the next call."""
        if not isinstance(self.after, Step):
            return self.after.nodes if self.after is not None else None
        changed = frozenset(self.after.changed)
        return tuple(state for state in self.after.nodes if state["obj_id"] in changed)

    @property
    def events(self) -> tuple[dict[str, Any], ...] | None:
        """The context's events until the next call; None if none were recorded, as in archives of
        earlier releases.
        """
        return self.after.events if self.after is not None else None


def replied_at(step: Step) -> float:
    """When a step's reply was archived, or that of the record by whose clock its statement went, in
    seconds since 1970; 0 if it does not say.
    """
    at = step.clock or step.finished_at
    return datetime.fromisoformat(at).timestamp() if at else 0.0


def turn_record(archive: JobArchive, run: str, turn: int) -> TurnRecord:
    """A turn of a run, or of the runs that it started from.

    Raises:
        NotFound: if the turn has no step.
    """
    step = archive.find_step(run, turn)
    if step is None:
        raise NotFound(f"{archive.job} has no turn {turn} in run {run}")
    return TurnRecord(step, archive.find_step(run, turn + 1) or end_after(archive, run, step))


def end_after(archive: JobArchive, run: str, step: Step) -> End | None:
    """The end of a run, if it comes after ``step``: a reply that arrived when its job had been
    cancelled was not executed.
    """
    end = archive.end(run)
    return end if end is not None and end.parent == step.ref else None


def user_messages(archive: JobArchive, run: str, turn: int) -> tuple[str, ...]:
    """The user's messages that a turn began with, in order."""
    own = f"event:{turn}."
    layout = archive.turn_layout(run, turn)
    return tuple(
        s.text for s in layout if s.kind is SegmentKind.MESSAGE and s.origin.startswith(own)
    )


def recorded_effect(archive: JobArchive, run: str, turn: int, effect: int) -> dict[str, Any] | None:
    """The archived result of an effect, wherever the run's statement had it; None if there is none.

    A statement that was cut by a reset has effects in two runs: the newer one's count. So has what
    was being prepared in the background, however long before.
    """
    archived = _effect(archive, run, turn, effect)
    return None if archived is None else dict(archived.header["value"])


def recorded_stream(archive: JobArchive, run: str, turn: int, effect: int, stream: str) -> bytes:
    """All that the command of an effect printed to ``stdout`` or ``stderr``.

    Raises:
        NotFound: if there is no such effect.
    """
    archived = _effect(archive, run, turn, effect)
    if archived is None:
        raise NotFound(f"turn {turn} has no effect {effect} in the archive")
    return archived.frame(stream)


def _effect(archive: JobArchive, run: str, turn: int, effect: int) -> ArchivedObject | None:
    everywhere = newest_first(archive.lineage.spans(run))
    # The newest first: what a reset run had done again counts more than what it was reset from.
    for span in everywhere if is_prepared(effect) else _spans_with(archive, run, turn):
        try:
            return archive.objects.get(keys.effect_key_in(span.prefix, turn, effect), "effect")
        except ObjectMissing:
            continue
    return None


def begun_with(archive: JobArchive, run: str, turn: int, effect: int) -> dict[str, Any] | None:
    """An effect by which a run began, as the run made it that was the first to do so; None if none
    did.

    A run that was reset to its first turn begins with what a run before it had, which its own
    timeline does not hold.
    """
    for span in archive.lineage.spans(run):
        job = JobArchive.of(archive.store, span.job)
        runs, own = [one for one in job.runs() if not keys.is_side_run(one)], span.run
        until = runs.index(own) + 1 if own in runs else len(runs)
        for earlier in reversed(runs[:until]):
            if (value := job.effect(earlier, turn, effect)) is not None:
                return value
    return None


def recorded_summary(archive: JobArchive, run: str, turn: int, name: str) -> Step | None:
    """The step of the call that wrote summary ``name`` for a turn's prompt; None if there is none.

    It stands beside the run that made the call: where the turn was replayed, that is the run that
    was followed.
    """
    step = archive.find_step(run, turn)
    if step is None:
        return None
    origin = origin_of(archive.store, step)
    for timeline, at in ((archive, run), (_archive_of(archive, origin), origin.run)):
        for span in _spans_with(timeline, at, turn):
            beside = JobArchive.of(archive.store, span.job)
            if (summary := beside.find_step(keys.side_run(span.run, name), turn)) is not None:
                return summary
    return None


def _archive_of(archive: JobArchive, step: Step) -> JobArchive:
    place = keys.parse_turn_key(step.ref.key)
    return JobArchive.of(archive.store, keys.job_of(place.job)) if place is not None else archive


def _spans_with(archive: JobArchive, run: str, turn: int) -> Iterator[Span]:
    """The spans of a timeline in which something of a turn may be, newest first.

    A run that was reset before its turn N holds that turn's tick and summaries, and the statement
    before may have run on.
    """
    for span in reversed(archive.lineage.spans(run)):
        if span.first - 1 <= turn and (span.last is None or turn <= span.last + 1):
            yield from span.with_through if turn <= span.first else (span,)
