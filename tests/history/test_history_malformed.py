"""The eight malformed histories that every agent meets: each ends as a valid prompt, in the live
View.
"""

from __future__ import annotations

from typing import Any

import pytest
from history_builders import action, ids, log_of, message, result

from runtime.history.events import HistoryRepaired, RepairReason
from runtime.history.view import View
from tests.history.oracle.provider_rules import check_view

HEAD = [message("S", "system"), message("G", "goal")]
NEXT = [action("A9", "r9", "t9"), result("O9", "t9")]

CASES: dict[str, tuple[list[Any], list[str], list[RepairReason]]] = {
    "call without result": (
        [action("A1", "r1", "t1"), message("U1")],
        ["U1"],
        [RepairReason.CALL_WITHOUT_RESULT],
    ),
    "result without call": ([result("O1", "t1")], [], [RepairReason.RESULT_WITHOUT_CALL]),
    "user message between call and result": (
        [action("A1", "r1", "t1"), message("U1"), result("O1", "t1")],
        ["A1", "U1", "O1"],
        [],
    ),
    "assistant message between call and result": (
        [action("A1", "r1", "t1"), message("M1", "agent"), result("O1", "t1")],
        ["A1", "M1", "O1"],
        [],
    ),
    "duplicate call id in one response": (
        [action("A1", "r1", "t1"), action("A2", "r1", "t1"), result("O1", "t1")],
        ["A1", "O1"],
        [RepairReason.DUPLICATE_CALL],
    ),
    "call id used again by a later response": (
        [
            action("A1", "r1", "t1"),
            result("O1", "t1"),
            action("A2", "r2", "t1"),
            result("O2", "t1"),
        ],
        ["A1", "O1", "A2", "O2"],
        [],
    ),
    "duplicate result": (
        [action("A1", "r1", "t1"), result("O1", "t1"), result("O2", "t1")],
        ["A1", "O1"],
        [RepairReason.SECOND_RESULT],
    ),
    "wrong id": (
        [action("A1", "r1", "t1"), result("O1", "t2")],
        [],
        [RepairReason.RESULT_WITHOUT_CALL, RepairReason.CALL_WITHOUT_RESULT],
    ),
    "results before calls": (
        [
            result("O1", "t1"),
            result("O2", "t2"),
            action("A1", "r1", "t1"),
            action("A2", "r1", "t2"),
        ],
        [],
        [
            RepairReason.RESULT_WITHOUT_CALL,
            RepairReason.RESULT_WITHOUT_CALL,
            RepairReason.CALL_WITHOUT_RESULT,
        ],
    ),
    "one call of a batch without result": (
        [action("A1", "r1", "t1"), action("A2", "r1", "t2"), result("O1", "t1")],
        [],
        [RepairReason.CALL_WITHOUT_RESULT],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_malformed_history_ends_as_valid_prompt(case: str) -> None:
    """After every single event the live View's prompt is valid, and at the end it holds what is
    sound.
    """
    events, kept, reasons = CASES[case]
    log = log_of()
    for event in [*HEAD, *events, *NEXT]:
        log.append(event)
        assert check_view(log.view.events) == []
    assert ids(log.view) == ["S", "G", *kept, "A9", "O9"]
    assert [e.reason for e in log if isinstance(e, HistoryRepaired)] == reasons
    assert View.from_events(log.events) == log.view
    assert max(log.view.manipulation_indices) == len(log.view)


def test_user_message_waits_behind_the_result() -> None:
    """In the prompt the result follows its call directly, and the message that came between stands
    behind it.
    """
    from tests.history.oracle.conversation import messages_of

    log = log_of(*HEAD, action("A1", "r1", "t1"), message("U1"), result("O1", "t1"))
    assert [m.events for m in messages_of(log.view.events)] == [
        ("S",),
        ("G",),
        ("A1",),
        ("O1",),
        ("U1",),
    ]


def test_pending_call_is_not_sent_and_leaves_no_index_after_it() -> None:
    """A call that waits for its result is in the View, not in the prompt, and nothing behind it may
    be touched.
    """
    from tests.history.oracle.conversation import messages_of

    log = log_of(*HEAD, action("A1", "r1", "t1"), message("U1"))
    assert ids(log.view) == ["S", "G", "A1", "U1"]
    assert list(log.view.manipulation_indices) == [2]
    assert [m.events for m in messages_of(log.view.events)] == [("S",), ("G",), ("U1",)]


def test_repair_events_name_cause_and_events() -> None:
    """A repair has an id made from its cause's, the ids of what was left out, and a detail that
    names the call.
    """
    log = log_of(*HEAD, action("A1", "r1", "t1"), *NEXT)
    repair = log[4]
    assert isinstance(repair, HistoryRepaired)
    assert (repair.id, repair.cause, repair.event_ids) == ("A9-repair-0", "A9", ("A1",))
    assert repair.detail == "no result of A1 came before the next response"


def test_statement_without_call_id_pairs_with_the_next_plain_result() -> None:
    """A text statement and its result are one pair for the indices; each may stand alone for a
    provider.
    """
    log = log_of(
        *HEAD, action("A1", "r1", None), message("U1"), result("O1", None), result("O2", None)
    )
    assert list(log.view.manipulation_indices) == [2, 5, 6]
    assert check_view(log.view.events) == []


def test_an_orphan_in_a_tool_loop_takes_only_its_own_batch() -> None:
    """A call that never got its result leaves, and the loop around it stays whole."""
    loop = [action("A1", "r1", "t1", thinking=True), result("O1", "t1")]
    log = log_of(
        *HEAD, *loop, action("A2", "r2", "t2"), action("A3", "r3", "t3"), result("O3", "t3")
    )
    assert ids(log.view) == ["S", "G", "A1", "O1", "A3", "O3"]
    assert list(log.view.manipulation_indices) == [2, 6]
