"""What statements did to the world, as the archive tells it."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore
from runtime.archive.told_effects import ToldEffect, told_effects


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
