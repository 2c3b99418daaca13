"""The View: the events of a log that the model is shown, right after every single event.

A View is made by appending the log's events one by one, and in no other way, so a live View and one
rebuilt from the log cannot differ. Appending and reading take constant time; a condensation takes
time in proportion to the part of the View behind the first event it forgets. What the View leaves
out or changes, it reports as ``HistoryRepaired`` events, whose ids are made from the id of the
event that was the cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from runtime.history.door import Rejected, rule_on
from runtime.history.events import (
    ActionEvent,
    Condensation,
    CondensationRequest,
    Event,
    HistoryRepaired,
    RepairReason,
    ShownEvent,
    is_shown,
)
from runtime.history.indices import BOTTOM, IndexNode, ManipulationIndices, NoNextIndex
from runtime.history.pairing import Pairing
from runtime.history.properties import ALL_PROPERTIES, ViewProperty
from runtime.history.properties.base import FreeTracker, push
from runtime.history.sequence import Prefix

Repairs = tuple[HistoryRepaired, ...]


class View(Sequence[ShownEvent]):
    """The shown events, in order, with the properties of ``properties`` holding over them."""

    def __init__(self, properties: Sequence[ViewProperty] = ALL_PROPERTIES) -> None:
        self.properties: tuple[ViewProperty, ...] = tuple(properties)
        trackers = (p.tracker() for p in self.properties)
        # They restrict nothing, and each event would ask them again.
        self._trackers = tuple(t for t in trackers if not isinstance(t, FreeTracker))
        self._pairing = Pairing()
        self._events: list[ShownEvent] = []
        self._handed_out = False
        self._positions: dict[str, int] = {}
        self._known: set[str] = set()
        self._stack = IndexNode(0, BOTTOM)
        self._unhandled_request = False

    @classmethod
    def from_events(
        cls, events: Iterable[Event], properties: Sequence[ViewProperty] = ALL_PROPERTIES
    ) -> View:
        """The View of a whole log: the same as appending its events one by one."""
        view = View(properties)
        for event in events:
            view._extend(event)
        return view

    def _resume(self, shown: Iterable[ShownEvent], *, unhandled_request: bool) -> None:
        """Fill this empty View with the events of a sound one that is between two turns: no call
        waits for its result.

        Ids of events that were forgotten before are not known any more.
        """
        for event in shown:
            self._pairing.take(event)
            self._push(event)
            self._known.add(event.id)
        self._unhandled_request = unhandled_request

    def append_event(self, event: Event) -> Repairs:
        """Take in the log's next event.

        Returns:
            What the View left out or changed because of it; empty for a sound event.
        """
        return self._extend(event)

    @property
    def events(self) -> Prefix[ShownEvent]:
        """The shown events: a read-only sequence that later appends do not change."""
        self._handed_out = True
        return Prefix(self._events, len(self._events))

    @property
    def manipulation_indices(self) -> ManipulationIndices:
        """The gaps at which anything may be inserted, and between any two of which events may be
        forgotten.
        """
        return ManipulationIndices.of_stack(self._stack)

    @property
    def unhandled_condensation_request(self) -> bool:
        """Whether somebody asked for a condensation and none has taken effect since."""
        return self._unhandled_request

    def forgettable(self, start: int, stop: int) -> tuple[str, ...]:
        """The ids of the events between the indices ``start`` and ``stop`` that no property
        protects.
        """
        return tuple(e.id for e in self._events[start:stop] if not self.protects(e))

    def protects(self, event: ShownEvent) -> bool:
        """Whether a property pins ``event``."""
        return any(p.protects(event) for p in self.properties)

    def position(self, event_id: str) -> int | None:
        """Where the event stands in the View; ``None`` if it is not in it."""
        return self._positions.get(event_id)

    @overload
    def __getitem__(self, index: int) -> ShownEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[ShownEvent]: ...
    def __getitem__(self, index: int | slice) -> ShownEvent | list[ShownEvent]:
        return self._events[index]

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[ShownEvent]:
        return iter(self.events)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, View):
            return NotImplemented
        return (
            self._events == other._events
            and self.manipulation_indices == other.manipulation_indices
            and self._unhandled_request == other._unhandled_request
            and self.properties == other.properties
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        ids = ", ".join(event.id for event in self._events)
        return f"View([{ids}], indices={list(self.manipulation_indices)})"

    def _extend(self, event: Event) -> Repairs:
        if event.id in self._known:
            # The log refuses a second event of one id: what is left is a View that is fed by
            # itself, and the id of a summary.
            return (
                _repair(
                    event,
                    0,
                    RepairReason.DUPLICATE_EVENT,
                    (event.id,),
                    "an event with this id is known",
                ),
            )
        repairs: Repairs = ()
        if is_shown(event):
            repairs = self._show(event)
        elif type(event) is Condensation:
            repairs = self._condense(event)
        elif type(event) is CondensationRequest:
            self._unhandled_request = True
        self._known.add(event.id)
        return repairs

    def _show(self, event: ShownEvent) -> Repairs:
        verdict = self._pairing.take(event)
        if verdict is None:
            self._push(event)
            return ()
        repairs: list[HistoryRepaired] = []
        # All of them are still there: the door lets nobody forget what waits for a result.
        if verdict.abandoned:
            self._drop(self._positions[i] for i in verdict.abandoned)
            detail = (
                "no result of " + ", ".join(verdict.unanswered) + " came before the next response"
            )
            reason = RepairReason.CALL_WITHOUT_RESULT
            repairs.append(_repair(event, len(repairs), reason, verdict.abandoned, detail))
        if verdict.refused is None:
            self._push(event)
        else:
            repairs.append(_repair(event, len(repairs), verdict.refused, (event.id,), ""))
        return tuple(repairs)

    def _condense(self, condensation: Condensation) -> Repairs:
        ruling = rule_on(
            condensation,
            events=self._events,
            positions=self._positions,
            known=self._known,
            trackers=self._trackers,
            properties=self.properties,
            last_index=self._stack.index,
        )
        if isinstance(ruling, Rejected):
            return (_repair(condensation, 0, ruling.reason, ruling.event_ids, ruling.detail),)
        notes = list(ruling.notes)
        for position in ruling.positions:
            event = self._events[position]
            if type(event) is ActionEvent:
                self._pairing.forget(event.llm_response_id)
        self._drop(ruling.positions)
        summary = condensation.summary_event
        if summary is not None:
            offset = self._offset(ruling.offset)
            if condensation.summary_offset not in (None, offset):
                detail = f"from {condensation.summary_offset} to {offset}"
                notes.append((RepairReason.OFFSET_MOVED, (summary.id,), detail))
            # Else a later event of this id would be let in beside the summary.
            self._known.add(summary.id)
            self._replay(offset, [summary, *self._events[offset:]])
        self._unhandled_request = False
        return tuple(_repair(condensation, n, *note) for n, note in enumerate(notes))

    def _offset(self, wanted: int | None) -> int:
        """The index at which a summary goes: the wanted one, or the nearest before it, or else the
        first.
        """
        indices = self.manipulation_indices
        if wanted is None:
            # Nothing was forgotten whose place it could take: it goes where the last gap is.
            return self._stack.index
        try:
            return indices.find_previous(wanted)
        except NoNextIndex:
            # All gaps up to there are the pinned head's: the first one is right behind it.
            return indices.find_next(0)

    def _push(self, event: ShownEvent) -> None:
        position = len(self._events)
        self._events.append(event)
        self._positions[event.id] = position
        self._stack = push(self._stack, self._trackers, position, event)

    def _drop(self, positions: Iterable[int]) -> None:
        gone = set(positions)
        if not gone:
            return
        try:
            # From the gap before: trackers can be cut at an index alone, and what stays is pushed
            # again.
            start = self.manipulation_indices.find_previous(min(gone))
        except NoNextIndex:
            start = 0
        for position in gone:
            del self._positions[self._events[position].id]
        tail = [e for p, e in enumerate(self._events[start:], start) if p not in gone]
        self._replay(start, tail)

    def _replay(self, index: int, tail: Sequence[ShownEvent]) -> None:
        """Make the View end at ``index`` and append ``tail``.

        Nothing before an index depends on what is behind it.
        """
        # Whoever holds a prefix looks into this very list: the View goes on with a copy, and only
        # then pays for one.
        if self._handed_out:
            self._events = self._events[:index]
            self._handed_out = False
        else:
            del self._events[index:]
        for tracker in self._trackers:
            tracker.truncate(index)
        while self._stack.depth and self._stack.index > index:
            self._stack = self._stack.below
        # The head's first event had taken the gap before it; it takes it again if it is pushed.
        if not self._stack.depth:
            self._stack = IndexNode(0, BOTTOM)
        for event in tail:
            self._push(event)


def _repair(
    cause: Event, number: int, reason: RepairReason, event_ids: tuple[str, ...], detail: str
) -> HistoryRepaired:
    return HistoryRepaired(
        id=f"{cause.id}-repair-{number}",
        turn=cause.turn,
        reason=reason,
        cause=cause.id,
        event_ids=event_ids,
        detail=detail,
    )
