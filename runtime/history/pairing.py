"""Which result answers which call: by the order of the log and by response, never by a global id.

A result answers an unanswered call of the newest response. When the next response begins, the calls
of the one before that have no result never get one: providers take no new turn before all results
are in. Ids may thus be used again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from runtime.history.events import (
    ActionEvent,
    Event,
    HistoryRepaired,
    RepairReason,
    Result,
    is_result,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What must be done about an event beside letting it in.

    ``refused`` says why it is left out of the View, ``abandoned`` which earlier events leave with
    its arrival: a batch of which a call never got a result. ``unanswered`` are those calls.
    """

    refused: RepairReason | None = None
    abandoned: tuple[str, ...] = ()
    unanswered: tuple[str, ...] = ()


class Pairing:
    """The pairs of a log so far; constant time for each event.

    It keeps few containers on purpose: with one set and one dictionary for each response, the
    garbage collector takes half of the time of rebuilding a long log.
    """

    def __init__(self) -> None:
        self._newest: str | None = None
        self._open: dict[str, str] = {}
        self._members: dict[str, list[str]] = {}
        self._refusing: dict[str, RepairReason] = {}
        self._calls: set[str] = set()
        self._answered: set[str] = set()
        self.answers: str | None = None

    def take(self, event: Event) -> Verdict | None:
        """What the next shown event of the log asks for; ``None`` if it is simply let in.

        ``answers`` is then the id of the action that the event is the result of, if it is one.
        """
        self.answers = None
        if type(event) is ActionEvent:
            return self._take_action(event)
        if is_result(event) and event.tool_call_id is not None:
            return self._take_result(event, event.tool_call_id)
        return None

    def forget(self, response: str) -> None:
        """A condensation forgot the batch ``response``: what still arrives of it is left out
        too.
        """
        self._refusing[response] = RepairReason.BATCH_FORGOTTEN

    def _take_action(self, action: ActionEvent) -> Verdict | None:
        response, call = action.llm_response_id, action.tool_call_id
        if call is not None:
            # With the length in front no two pairs make the same text; one text, for the sake of
            # the collector, and no tuple.
            key = f"{len(response)}:{response}{call}"
            if key in self._calls:
                return Verdict(refused=RepairReason.DUPLICATE_CALL)
            self._calls.add(key)
        abandoned: tuple[str, ...] = ()
        unanswered: tuple[str, ...] = ()
        if response != self._newest:
            # A new response has begun, so what is still open never gets its result.
            if self._open and self._newest is not None:
                abandoned, unanswered = (
                    tuple(self._members.pop(self._newest)),
                    tuple(self._open.values()),
                )
                # What still comes of that response would stand there without the rest of its batch.
                self._refusing[self._newest] = RepairReason.BATCH_BROKEN
                self._open.clear()
            self._newest = response
        refused = self._refusing.get(response)
        if refused is None:
            members = self._members.get(response)
            if members is None:
                self._members[response] = [action.id]
            else:
                members.append(action.id)
            if call is not None:
                self._open[call] = action.id
            if not abandoned:
                return None
        return Verdict(refused, abandoned, unanswered)

    def _take_result(self, result: Result, call: str) -> Verdict | None:
        action = self._open.pop(call, None)
        if action is not None and self._newest is not None:
            # With their results: a batch that is abandoned takes them along.
            self._members[self._newest].append(result.id)
            self._answered.add(call)
            self.answers = action
            return None
        again = call in self._answered
        return Verdict(
            refused=RepairReason.SECOND_RESULT if again else RepairReason.RESULT_WITHOUT_CALL
        )


@dataclass(frozen=True, slots=True)
class Pairs:
    """What the pairing of a whole log found.

    ``pairs`` are (action id, result id). ``unmatched`` are calls and results without their other
    half; a call that may still get its result is none. ``duplicates`` are actions that repeat a
    call of their own response. ``left_out`` are all events that are in no View: these, and what
    went with them.
    """

    pairs: tuple[tuple[str, str], ...]
    unmatched: frozenset[str]
    duplicates: frozenset[str]
    left_out: frozenset[str]


def pairs_of(log: Iterable[Event]) -> Pairs:
    """The pairs of a log, as it was recorded: its repairs say which late events a condensation kept
    out.
    """
    pairing = Pairing()
    pairs: list[tuple[str, str]] = []
    unmatched: set[str] = set()
    duplicates: set[str] = set()
    left_out: set[str] = set()
    for event in log:
        if type(event) is HistoryRepaired and event.reason is RepairReason.BATCH_FORGOTTEN:
            left_out.update(event.event_ids)
        if type(event) is not ActionEvent and not is_result(event):
            continue
        verdict = pairing.take(event)
        if pairing.answers is not None:
            pairs.append((pairing.answers, event.id))
        if verdict is None:
            continue
        unmatched.update(verdict.unanswered)
        left_out.update(verdict.abandoned)
        if verdict.refused is not None:
            left_out.add(event.id)
            (duplicates if verdict.refused is RepairReason.DUPLICATE_CALL else unmatched).add(
                event.id
            )
    return Pairs(tuple(pairs), frozenset(unmatched), frozenset(duplicates), frozenset(left_out))
