"""The log tells of every forgotten event when it went, by which condensation, and what stands in
its place.
"""

from __future__ import annotations

from history_builders import action, forget, log_of, message, result

from tests.history.oracle.forgotten import Forgotten, forgotten_events


def test_forgotten_events_are_told_by_condensation() -> None:
    """What was widened counts, what was pinned or rejected does not, and a summary may be forgotten
    itself.
    """
    log = log_of(message("G", "goal"), action("A1", "r1", "t1"), result("O1", "t1"), message("U1"))
    log.append(forget("c1", ["G", "O1"], "one"))
    log.append(forget("c2", ["nobody"]))
    log.append(forget("c3", ["c1-summary", "A1", "U1"]))
    assert list(forgotten_events(log).values()) == [
        Forgotten("A1", 0, "c1", "c1-summary"),
        Forgotten("O1", 0, "c1", "c1-summary"),
        Forgotten("U1", 0, "c3", None),
        Forgotten("c1-summary", 0, "c3", None),
    ]
