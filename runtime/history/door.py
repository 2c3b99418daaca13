"""The door for condensations: ids must be known, units whole, nothing unfinished, nothing pinned.

What asks for part of a unit is widened to the whole of it; what cannot be mended is rejected and
has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from runtime.history.events import Condensation, RepairReason, ShownEvent
from runtime.history.properties.base import Tracker, ViewProperty

Note = tuple[RepairReason, tuple[str, ...], str]

NO_SUCH_EVENT = "no such event before this condensation"


@dataclass(frozen=True, slots=True)
class Rejected:
    """The condensation has no effect, and why."""

    reason: RepairReason
    event_ids: tuple[str, ...]
    detail: str


@dataclass(frozen=True, slots=True)
class Admitted:
    """The positions to forget, in order, the wanted offset of the summary, and what was changed on
    the way.
    """

    positions: tuple[int, ...]
    offset: int | None
    notes: tuple[Note, ...]


def rule_on(
    condensation: Condensation,
    *,
    events: Sequence[ShownEvent],
    positions: Mapping[str, int],
    known: Set[str],
    trackers: Sequence[Tracker],
    properties: Sequence[ViewProperty],
    last_index: int,
) -> Rejected | Admitted:
    """Whether and how ``condensation`` takes effect on a View of ``events`` whose last index is
    ``last_index``.

    Ids of events that are known and not in the View (forgotten before, or never shown) need
    nothing. Of ids that nobody knows the rest takes effect, unless there is no rest.
    """
    unknown = tuple(i for i in condensation.forgotten_event_ids if i not in known)
    if (rejected := _rejected_by_ids(condensation, known, unknown)) is not None:
        return rejected
    asked = {positions[i] for i in condensation.forgotten_event_ids if i in positions}
    pinned = {p for p in asked if any(rule.protects(events[p]) for rule in properties)}
    seeds = asked - pinned
    gone = _whole_units(seeds, trackers)
    # No gap behind the last index is safe: a call there waits for its result.
    unfinished = tuple(events[p].id for p in sorted(gone) if p >= last_index)
    if unfinished:
        return Rejected(
            RepairReason.REJECTED_PENDING, unfinished, "at or behind a call that has no result yet"
        )
    if condensation.summary is None and not gone:
        return Rejected(
            RepairReason.REJECTED_EMPTY, (), "forgets nothing that is shown, and has no summary"
        )
    if condensation.summary is not None and not condensation.summary.strip():
        return Rejected(RepairReason.REJECTED_EMPTY, (), "the summary is empty")
    notes: list[Note] = []
    if unknown:
        notes.append((RepairReason.UNKNOWN_IGNORED, unknown, NO_SUCH_EVENT))
    if pinned:
        notes.append((RepairReason.PINNED_KEPT, tuple(events[p].id for p in sorted(pinned)), ""))
    if widened := tuple(events[p].id for p in sorted(gone - seeds)):
        notes.append((RepairReason.WIDENED, widened, "to whole units"))
    offset = condensation.summary_offset
    if offset is None and gone:
        # What stands before the first that goes stays, so its place is the same after forgetting.
        offset = min(gone)
    return Admitted(tuple(sorted(gone)), offset, tuple(notes))


def _rejected_by_ids(
    condensation: Condensation, known: Set[str], unknown: tuple[str, ...]
) -> Rejected | None:
    """Why a condensation cannot take effect by the ids that it names, whatever the View shows."""
    if unknown and len(unknown) == len(condensation.forgotten_event_ids):
        return Rejected(RepairReason.REJECTED_UNKNOWN, unknown, NO_SUCH_EVENT)
    if condensation.summary is not None and condensation.summary_event_id in known:
        taken = (condensation.summary_event_id,)
        return Rejected(RepairReason.REJECTED_ID_TAKEN, taken, "another event has the summary's id")
    return None


def _whole_units(seeds: Set[int], trackers: Sequence[Tracker]) -> set[int]:
    """``seeds`` and all that must leave with them, to a fixed point.

    Each unit is looked at once.
    """
    gone = set(seeds)
    waiting = sorted(seeds)
    seen: set[tuple[int, int]] = set()
    while waiting:
        position = waiting.pop()
        for number, tracker in enumerate(trackers):
            unit = tracker.unit(position)
            # A pair may be reached from either of its ends: the lower one names it.
            name = (number, min(unit[0], unit[-1]))
            if len(unit) == 1 or name in seen:
                continue
            seen.add(name)
            waiting.extend(other for other in unit if other not in gone)
            gone.update(unit)
    return gone
