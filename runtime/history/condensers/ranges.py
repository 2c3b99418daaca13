"""Which stretch of a View a condensation forgets: always from one manipulation index to another."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.history.condensers.base import Situation, Trigger
from runtime.history.events import CondensationSummaryEvent, ShownEvent
from runtime.history.indices import NoNextIndex
from runtime.history.view import View


@dataclass(frozen=True, slots=True)
class Stretch:
    """The gap before the first event to forget, the gap after the last, and the events between that
    may go.
    """

    start: int
    stop: int
    events: tuple[ShownEvent, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the events."""
        return tuple(event.id for event in self.events)


def stretch_to_forget(
    view: View, situation: Situation, *, keep_first: int, max_events: int
) -> Stretch | None:
    """The stretch behind the first ``keep_first`` events that answers the situation's triggers;
    ``None`` if none does.

    Events: down to half of ``max_events``. Tokens: down to half of the window's part that is not
    fixed. A request: half of what there is. A provider that refused the prompt: as for tokens, and
    half of what there is at least, since its count is not ours. One summary alone is no stretch:
    forgetting it behind another gains nothing.
    """
    start = first_index(view, keep_first)
    if start is None:
        return None
    wanted = start
    if Trigger.EVENTS in situation.triggers and len(view) > max_events:
        # Down to half, not to just below the limit: each condensation breaks the cached prefix, and
        # one that leaves no room would be followed by another in the next turns.
        wanted = max(wanted, start + len(view) - max_events // 2)
    room = max(situation.window - situation.fixed_tokens, 0)
    excess = situation.prompt_tokens - situation.fixed_tokens - room // 2
    if situation.triggers & {Trigger.TOKENS, Trigger.WINDOW} and excess > 0:
        wanted = max(wanted, _position_of_tokens(view, situation, start, excess))
    if situation.triggers & {Trigger.REQUEST, Trigger.WINDOW}:
        half = sum(situation.count(event) for event in view[start:]) // 2
        wanted = max(wanted, _position_of_tokens(view, situation, start, max(half, 1)))
    if wanted == start:
        return None
    stretch = stretch_near(view, start, min(wanted, len(view)))
    stop = last_index(view, situation)
    if stretch is not None and stretch.stop > stop:
        stretch = stretch_between(view, start, stop)
    return None if stretch is None or is_one_summary(stretch) else stretch


def last_index(view: View, situation: Situation) -> int:
    """The last index up to which events may go: before those that the model has not been shown."""
    unseen = len(view) if situation.unseen_from is None else situation.unseen_from
    try:
        return view.manipulation_indices.find_previous(unseen)
    except NoNextIndex:
        return 0


def is_one_summary(stretch: Stretch) -> bool:
    """Whether the stretch is a summary and nothing else."""
    return len(stretch.events) == 1 and isinstance(stretch.events[0], CondensationSummaryEvent)


def stretch_near(view: View, start: int, wanted: int) -> Stretch | None:
    """The stretch from the index ``start`` to the next index at or above ``wanted``, or else the
    last one below.

    One unit may reach far beyond what was wanted, an endless tool loop to the end: it goes as a
    whole.
    """
    indices = view.manipulation_indices
    try:
        stop = indices.find_next(wanted)
    except NoNextIndex:
        stop = indices.find_previous(wanted)
    return stretch_between(view, start, stop)


def stretch_between(view: View, start: int, stop: int) -> Stretch | None:
    """The events between two indices that are not pinned; ``None`` if there are none."""
    events = tuple(event for event in view[start:stop] if not view.protects(event))
    return Stretch(start, stop, events) if stop > start and events else None


def first_index(view: View, keep_first: int) -> int | None:
    """The first index at or behind ``keep_first`` events; ``None`` if there is none."""
    try:
        return view.manipulation_indices.find_next(keep_first)
    except NoNextIndex:
        return None


def _position_of_tokens(view: View, situation: Situation, start: int, tokens: int) -> int:
    """How far from ``start`` one must go to have passed ``tokens`` tokens of events that may be
    forgotten.
    """
    passed = 0
    for position in range(start, len(view)):
        event = view[position]
        # What is pinned stays, so passing it frees nothing.
        passed += 0 if view.protects(event) else situation.count(event)
        if passed >= tokens:
            return position + 1
    return len(view)
