"""When a run is full: by what was seen at its last wait for the server, so that a replay sees the
same.
"""

from dataclasses import dataclass
from datetime import timedelta

from workflows.continuing import LEAST_EVENTS, Run

MINUTE = timedelta(minutes=1)


@dataclass
class Told:
    """A history as the SDK tells of it at a moment."""

    events: int
    suggested: bool = True

    def get_current_history_length(self) -> int:
        return self.events

    def is_continue_as_new_suggested(self) -> bool:
        return self.suggested


def test_a_run_is_full_once_the_server_says_so_and_it_has_grown() -> None:
    """Events with which it began do not count; nor do those that came after the last wait for the
    server.

    A query that ends a workflow task while a verdict is recorded adds three of them, which a replay
    would not see there.
    """
    run, told = Run(), Told(9)
    run.look(told)
    run.began()
    told.events = 9 + LEAST_EVENTS
    run.look(told)
    told.events += 3
    assert not run.is_full(MINUTE)
    run.look(told)
    assert run.is_full(MINUTE)
    told.suggested = False
    assert run.is_full(MINUTE)
    run.look(told)
    assert not run.is_full(MINUTE)


def test_a_run_recalls_what_its_last_look_saw() -> None:
    """As it was recorded then, though a replay sees more events, and that the server suggests to
    end.
    """
    run, again = Run(), Run()
    for each in (run, again):
        each.look(Told(9))
        each.began()
    run.look(Told(9 + LEAST_EVENTS))
    again.look(Told(12 + LEAST_EVENTS))
    again.recall(run.looked)
    assert again == run
    run.look(Told(20 + LEAST_EVENTS, suggested=False))
    again.look(Told(23 + LEAST_EVENTS))
    again.recall(run.looked)
    assert not again.is_full(MINUTE) and not run.is_full(MINUTE)


def test_a_run_is_full_once_its_statements_take_a_quarter_of_a_workflow_task() -> None:
    """However short its history is."""
    run = Run()
    run.statement_ms = 15_000
    assert not run.is_full(MINUTE)
    run.statement_ms += 1
    assert run.is_full(MINUTE)
