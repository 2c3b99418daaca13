"""Condensations at the door: known ids, whole units, nothing pinned, nothing pending, the summary
on an index.
"""

from __future__ import annotations

import pytest
from history_builders import action, forget, ids, log_of, message, result

from runtime.history.events import CondensationRequest, RepairReason
from runtime.history.log import EventLog
from runtime.history.properties import USER_MESSAGES_PINNED
from tests.history.oracle.forgotten import forgotten_events
from tests.history.oracle.provider_rules import check_view

HEAD = [message("S", "system"), message("G", "goal")]
PAIR = [action("A1", "r1", "t1"), result("O1", "t1")]
THEN = [message("U1"), action("A2", "r2", "t2"), result("O2", "t2")]


def reasons(repairs: object) -> list[RepairReason]:
    return [repair.reason for repair in repairs]  # type: ignore[attr-defined]


def test_summary_takes_the_place_of_what_was_forgotten() -> None:
    """The summary stands where the first forgotten event stood."""
    log = log_of(*HEAD, *PAIR, *THEN)
    assert log.append(forget("c", ["A1", "O1"], "did a thing")) == ()
    assert ids(log.view) == ["S", "G", "c-summary", "U1", "A2", "O2"]
    assert log.view[2].summary == "did a thing"


def test_documents_example() -> None:
    """Forgetting two events with a summary at offset 2 gives the sequence of the design
    document.
    """
    log = log_of(*(message(i) for i in ("E0", "E1", "E5", "E7", "E10")))
    log.append(forget("c", ["E5", "E7"], "Earlier work...", 2))
    assert ids(log.view) == ["E0", "E1", "c-summary", "E10"]


def test_half_a_pair_is_widened_to_the_pair() -> None:
    """Who asks for a result alone forgets its call too, and the log says so."""
    log = log_of(*HEAD, *PAIR, *THEN)
    (repair,) = log.append(forget("c", ["O1"]))
    assert (repair.reason, repair.event_ids) == (RepairReason.WIDENED, ("A1",))
    assert ids(log.view) == ["S", "G", "U1", "A2", "O2"]
    assert log[-1] == repair


def test_pinned_events_stay() -> None:
    """System prompt and goal survive a condensation of everything."""
    log = log_of(*HEAD, *PAIR, *THEN)
    (repair,) = log.append(forget("c", ids(log.view), "all"))
    assert (repair.reason, repair.event_ids) == (RepairReason.PINNED_KEPT, ("S", "G"))
    assert ids(log.view) == ["S", "G", "c-summary"]


def test_user_messages_are_pinned_on_request() -> None:
    """With the user's messages pinned, they stay in their place while all around them goes."""
    log = EventLog.from_events([*HEAD, *PAIR, *THEN], USER_MESSAGES_PINNED)
    log.append(forget("c", ids(log.view), "all"))
    assert ids(log.view) == ["S", "G", "c-summary", "U1"]


def test_what_is_known_goes_and_what_is_not_is_recorded() -> None:
    """One unknown id of several does not keep the rest: a record says which it was."""
    log = log_of(*HEAD, *PAIR, *THEN)
    (repair,) = log.append(forget("c", ["A1", "later", "O1"], "sum"))
    assert (repair.reason, repair.event_ids) == (RepairReason.UNKNOWN_IGNORED, ("later",))
    assert ids(log.view) == ["S", "G", "c-summary", "U1", "A2", "O2"]
    assert forgotten_events(list(log)).keys() == {"A1", "O1"}
    assert ids(EventLog.from_events(list(log)).view) == ids(log.view)


def test_only_unknown_ids_reject_the_condensation() -> None:
    """A condensation that names no event that anybody knows has no effect, and the request for one
    stays unhandled.
    """
    log = log_of(*HEAD, *PAIR, CondensationRequest(id="q", turn=0))
    (repair,) = log.append(forget("c", ["later"], "sum"))
    assert (repair.reason, repair.event_ids) == (RepairReason.REJECTED_UNKNOWN, ("later",))
    assert ids(log.view) == ["S", "G", "A1", "O1"]
    assert log.view.unhandled_condensation_request


def test_pending_call_cannot_be_forgotten() -> None:
    """What waits for a result, and what stands behind it, stays."""
    log = log_of(*HEAD, *PAIR, action("A2", "r2", "t2"))
    assert reasons(log.append(forget("c", ["A1", "A2"]))) == [RepairReason.REJECTED_PENDING]
    assert ids(log.view) == ["S", "G", "A1", "O1", "A2"]


@pytest.mark.parametrize("summary", ["", " \n"])
def test_empty_summary_is_rejected(summary: str) -> None:
    """An empty summary never stands for anything."""
    log = log_of(*HEAD, *PAIR)
    assert reasons(log.append(forget("c", ["A1", "O1"], summary))) == [RepairReason.REJECTED_EMPTY]
    assert ids(log.view) == ["S", "G", "A1", "O1"]


@pytest.mark.parametrize(("offset", "place"), [(0, 2), (3, 2), (4, 4), (99, 7), (-3, 2)])
def test_offset_off_an_index_is_moved(offset: int, place: int) -> None:
    """A summary that would split a unit, or stand before the head, goes to the nearest index
    before, or the first.
    """
    log = log_of(*HEAD, *PAIR, *THEN)
    repairs = log.append(forget("c", [], "sum", offset))
    assert ids(log.view)[place] == "c-summary"
    assert reasons(repairs) == ([] if offset == place else [RepairReason.OFFSET_MOVED])


def test_summary_stays_until_its_id_is_named() -> None:
    """A later condensation leaves an earlier summary alone, unless it names it."""
    log = log_of(*HEAD, *PAIR, *THEN)
    log.append(forget("c1", ["A1", "O1"], "one"))
    log.append(forget("c2", ["A2", "O2"], "two"))
    assert ids(log.view) == ["S", "G", "c1-summary", "U1", "c2-summary"]
    log.append(forget("c3", ["c1-summary", "U1", "c2-summary"], "three"))
    assert ids(log.view) == ["S", "G", "c3-summary"]


def test_what_arrives_of_a_forgotten_batch_goes_too() -> None:
    """A batch of which a part was forgotten is never partly in the View."""
    log = log_of(*HEAD, *PAIR)
    log.append(forget("c", ["A1", "O1"], "sum"))
    assert reasons(log.append(action("A1b", "r1", "t9"))) == [RepairReason.BATCH_FORGOTTEN]
    assert reasons(log.append(result("O1b", "t9"))) == [RepairReason.RESULT_WITHOUT_CALL]
    assert ids(log.view) == ["S", "G", "c-summary"]


def test_endless_thinking_loop_can_be_condensed_and_goes_on() -> None:
    """One loop from the first turn on is forgotten as a whole; what the model does next starts
    anew.
    """
    log = log_of(*HEAD, action("A0", "r0", "t0", thinking=True), result("O0", "t0"))
    for n in range(1, 50):
        log.append(action(f"A{n}", f"r{n}", f"t{n}"))
        log.append(result(f"O{n}", f"t{n}"))
    assert list(log.view.manipulation_indices) == [2, 102]
    (repair,) = log.append(forget("c", ["A7"], "fifty turns"))
    assert repair.reason == RepairReason.WIDENED and len(repair.event_ids) == 99
    log.append(action("A50", "r50", "t50"))
    log.append(result("O50", "t50"))
    assert ids(log.view) == ["S", "G", "c-summary", "A50", "O50"]
    assert list(log.view.manipulation_indices) == [2, 3, 5]
    assert check_view(log.view.events) == []


def test_request_is_handled_by_the_next_condensation() -> None:
    """``unhandled_condensation_request`` is true between a request and the next condensation that
    takes effect.
    """
    log = log_of(*HEAD, *PAIR)
    assert not log.view.unhandled_condensation_request
    log.append(CondensationRequest(id="q", turn=0))
    assert log.view.unhandled_condensation_request
    log.append(forget("c", ["A1", "O1"], "sum"))
    assert not log.view.unhandled_condensation_request
