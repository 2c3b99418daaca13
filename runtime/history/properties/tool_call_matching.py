"""ToolCallMatching: a tool call and its result are in the View together, and nothing comes between
them.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.history.events import ActionEvent, Event, ShownEvent, is_result
from runtime.history.pairing import pairs_of
from runtime.history.properties.base import Tracker, ViewProperty

_ALONE = -1


class _Pairs(Tracker):
    """The partner of every event, and the calls of the newest response that wait for a result, by
    id.

    A call that a newer response overtook waits for ever: in a View it is not there any more.
    """

    def __init__(self) -> None:
        self._partner: list[int] = []
        self._actions: list[int] = []
        self._has_no_call_id: list[bool] = []
        self._response: str | None = None
        self._open: dict[str, int] = {}
        self._waiting = 0

    def append(self, position: int, event: ShownEvent) -> int:
        partner = _ALONE
        if type(event) is ActionEvent:
            self._append_action(position, event)
        elif is_result(event):
            if event.tool_call_id is None:
                partner = self._unanswered_statement()
            else:
                partner = self._open.pop(event.tool_call_id, _ALONE)
                self._waiting -= partner != _ALONE
                self.blocked = self._waiting > 0
        self._partner.append(partner)
        if partner == _ALONE:
            return position
        self._partner[partner] = position
        return partner

    def _append_action(self, position: int, action: ActionEvent) -> None:
        if action.llm_response_id != self._response:
            self._response = action.llm_response_id
            # ``_waiting`` stays as it is: a call that was overtaken blocks every later gap.
            self._open.clear()
        self._actions.append(position)
        self._has_no_call_id.append(action.tool_call_id is None)
        if action.tool_call_id is not None:
            self._open[action.tool_call_id] = position
            self._waiting += 1
            self.blocked = True

    def _unanswered_statement(self) -> int:
        """The newest action, if it has neither a call id nor a result."""
        if not self._actions or not self._has_no_call_id[-1]:
            return _ALONE
        position = self._actions[-1]
        return position if self._partner[position] == _ALONE else _ALONE

    def truncate(self, position: int) -> None:
        """Forget the end. At a manipulation index no call waits, and no pair reaches across."""
        del self._partner[position:]
        while self._actions and self._actions[-1] >= position:
            self._actions.pop()
            self._has_no_call_id.pop()
        self._open.clear()
        self._response, self._waiting, self.blocked = None, 0, False

    def unit(self, position: int) -> Sequence[int]:
        """The call and its result."""
        partner = self._partner[position]
        return (position,) if partner == _ALONE else (position, partner)


class ToolCallMatching(ViewProperty):
    """Pairs are found by order and response (``runtime.history.pairing``), never by a global id.

    A statement without a call id and its result are held together by the indices alone: a provider
    accepts either without the other.
    """

    def tracker(self) -> Tracker:
        """Open calls and the pairs before them."""
        return _Pairs()

    def enforce(self, events: Sequence[ShownEvent], log: Sequence[Event]) -> frozenset[str]:
        """Calls without a result, results without a call, and the half of a pair whose other half
        is not there.
        """
        present = {event.id for event in events}
        pairing = pairs_of(log)
        gone = present.intersection(pairing.unmatched | pairing.duplicates)
        for call, result in pairing.pairs:
            if (call in present) != (result in present):
                gone |= present.intersection((call, result))
        return frozenset(gone)
