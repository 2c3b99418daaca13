"""Long random histories: after every event the live View equals the rebuilt one and the naive
oracle's.
"""

from __future__ import annotations

from typing import Any

from history_builders import action, forget, ids, message, result
from history_oracle import naive_view
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from runtime.history.events import CondensationRequest
from runtime.history.log import EventLog
from runtime.history.properties import ALL_PROPERTIES
from runtime.history.view import View
from tests.history.oracle.provider_rules import check_view
from tests.tiers.tiers import examples

CALLS = st.sampled_from(["a", "b", "c", None])
RESPONSES = st.sampled_from(["r0", "r1", "r2", "r3"])


class Histories(RuleBasedStateMachine):
    """Appends anything, sound or not, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.log = EventLog()
        self.given: list[Any] = []
        self.fresh = 0

    def add(self, event: Any) -> None:
        self.given.append(event)
        self.log.append(event)

    def next_id(self) -> str:
        return f"e{len(self.given)}"

    @rule(source=st.sampled_from(["system", "goal", "user", "framework", "agent"]))
    def say(self, source: str) -> None:
        self.add(message(self.next_id(), source))

    @rule(call=CALLS, thinking=st.booleans())
    def act_in_a_new_response(self, call: str | None, thinking: bool) -> None:
        self.fresh += 1
        self.add(action(self.next_id(), f"n{self.fresh}", call, thinking=thinking))

    @rule(response=RESPONSES, call=CALLS, thinking=st.booleans())
    def act_in_some_response(self, response: str, call: str | None, thinking: bool) -> None:
        self.add(action(self.next_id(), response, call, thinking=thinking))

    @rule(call=CALLS)
    def answer(self, call: str | None) -> None:
        self.add(result(self.next_id(), call))

    @rule(call=CALLS, thinking=st.booleans())
    def turn(self, call: str | None, thinking: bool) -> None:
        self.act_in_a_new_response(call, thinking)
        self.answer(call)

    @rule()
    def request(self) -> None:
        self.add(CondensationRequest(id=self.next_id(), turn=0))

    @rule(data=st.data(), summary=st.sampled_from([None, "sum"]))
    def condense_between_indices(self, data: st.DataObject, summary: str | None) -> None:
        gaps = list(self.log.view.manipulation_indices)
        start, stop = sorted((data.draw(st.sampled_from(gaps)), data.draw(st.sampled_from(gaps))))
        self.add(forget(self.next_id(), self.log.view.forgettable(start, stop), summary))

    @rule(data=st.data(), summary=st.sampled_from([None, "", "sum"]))
    def condense_anything(self, data: st.DataObject, summary: str | None) -> None:
        names = [*ids(self.given), "never"]
        chosen = data.draw(st.lists(st.sampled_from(names), max_size=4))
        offset = data.draw(st.one_of(st.none(), st.integers(-2, 30)))
        self.add(forget(self.next_id(), chosen, summary, offset))

    @invariant()
    def live_equals_rebuilt_and_oracle(self) -> None:
        view = self.log.view
        assert View.from_events(self.given) == view
        expected = naive_view(self.given)
        assert [e.id for e in expected.shown] == ids(view)
        assert expected.indices == view.manipulation_indices
        assert expected.request == view.unhandled_condensation_request

    @invariant()
    def every_property_accepts_and_every_prompt_is_valid(self) -> None:
        for rule_ in ALL_PROPERTIES:
            assert rule_.enforce(self.log.view.events, self.log.events) == frozenset()
        assert check_view(self.log.view.events) == []


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=examples(60), stateful_step_count=40)
