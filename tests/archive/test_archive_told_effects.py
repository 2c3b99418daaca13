"""What statements did to the world, as the archive tells it."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.archive import keys
from runtime.archive.approvals import DECISIONS, QUESTIONS
from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore
from runtime.archive.told_effects import HANDS, ToldDecision, ToldEffect, told_effects
from runtime.context.api import HAND_NAMES


def told(value: dict[str, Any]) -> ToldEffect:
    """Of a command whose effect has this value."""
    archive = JobArchive(MemoryStore(), "b", "j")
    archive.write_effect("r", 1, 0, value)
    (only,) = told_effects(archive, "r", 1, {"effects": [{"kind": "change", "name": "sh"}]})
    return only


def test_of_a_change_it_tells_what_it_came_to() -> None:
    """Its paths, and of a command how it ended."""
    one = told({"changed": [["a", "M"]], "count": 1, "value": {"exit_code": 2, "stdout": ""}})
    assert (one.changed, one.count, one.exit_code, one.seconds) == ((("a", "M"),), 1, 2, None)


def test_a_tool_on_the_files_of_a_job_is_told_once() -> None:
    """Its record has the name as the path; a file or a command may be called as the call is."""
    names = ("build", *sorted(HANDS))
    effects = [{"kind": "change", "name": name, "path": name} for name in names]
    archive = JobArchive(MemoryStore(), "b", "j")
    told = told_effects(archive, "r", 1, {"effects": effects})
    assert [one.path for one in told] == [None, *sorted(HANDS)]
    assert HAND_NAMES | {"open"} == HANDS


@pytest.mark.parametrize(
    "value",
    [
        {"changed": 3},
        {"changed": [3]},
        {"changed": [["a"]]},
        {"count": "many"},
        {"value": {"exit_code": [1]}},
        {"value": {"seconds": "long"}},
    ],
)
def test_what_is_told_in_no_known_form_is_damage(value: dict[str, Any]) -> None:
    """Of one effect, beside all others."""
    assert told(value).damaged == "what effect 0 came to is told in no known form"


@pytest.mark.parametrize(
    ("decision", "told", "damaged"),
    [
        (
            {"question": "q", "approved": True, "by": "ann@desk", "at": 2.5, "arguments": {}},
            ToldDecision(approved=True, by="ann@desk", at=2.5, edited=True),
            None,
        ),
        (
            {"question": "q", "approved": False, "reason": "nobody answered within 1s"},
            ToldDecision(approved=False, reason="nobody answered within 1s"),
            None,
        ),
        ({"approved": [1]}, None, "what effect 1 came to is told in no known form"),
        ("yes", None, "what effect 1 came to is told in no known form"),
    ],
)
def test_who_decided_on_a_call_is_told_of_that_call(
    decision: Any, told: ToldDecision | None, damaged: str | None
) -> None:
    """By what the record after the turn names; of the other calls, and of other turns, nothing."""
    archive = JobArchive(MemoryStore(), "b", "j")
    numbers = [0, 1, QUESTIONS + 1, DECISIONS + 1]
    archive.write_effect("r", 1, DECISIONS + 1, {"decision": decision})
    named = [keys.effect_key("b/j", "r", turn, number) for turn in (1, 2) for number in numbers]
    execution = {"effects": [{"kind": "tool", "name": "pay"}] * 2}
    first, second = told_effects(archive, "r", 1, execution, named)
    assert (first.decision, first.damaged) == (None, None)
    assert (second.decision, second.damaged) == (told, damaged)


def test_a_decision_that_is_gone_is_damage() -> None:
    """It is named, and so it was there."""
    archive = JobArchive(MemoryStore(), "b", "j")
    named = [keys.effect_key("b/j", "r", 1, DECISIONS)]
    (only,) = told_effects(archive, "r", 1, {"effects": [{"kind": "tool", "name": "pay"}]}, named)
    assert only.damaged is not None
    assert named[0] in only.damaged
