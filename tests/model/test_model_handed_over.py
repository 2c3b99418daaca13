"""Requests of providers without a wire: the same bytes as if each were made by itself."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from activities._handed_over import Encoded, handed_over
from runtime.base.digests import canonical_json

VALUES = st.recursive(
    st.none() | st.sampled_from(["", "a", "\n\u00e9\ud800", 0, 1, 1.0, True, False]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["role", "content", "\u00e9"]), inner, max_size=3)
    ),
    max_leaves=4,
)
PROMPTS = st.lists(st.lists(VALUES, max_size=4), max_size=5)


@given(PROMPTS)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_a_request_is_its_canonical_json(prompts: list[list[Any]]) -> None:
    """Whatever the job's request before was, and whoever changes that one's messages later."""
    for messages in prompts:
        request = {"model": "scripted/x", "messages": messages, "tools": [{"b": 1, "a": None}]}
        assert handed_over("job", request) == canonical_json(request)
        for message in messages:
            if isinstance(message, dict):
                message["content"] = "changed"
            elif isinstance(message, list):
                message.append("changed")


def test_what_stood_in_the_prompt_before_is_not_made_again() -> None:
    """The tail of a prompt is new, and what is behind its first change; numbers are each time."""
    calls = [{"id": "1", "function": {"name": "python", "arguments": "{}"}}]
    first = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "user", "content": "left: 2"},
    ]
    second = [*deepcopy(first[:2]), {"role": "tool", "content": "done"}, {"role": "user", "n": 1}]
    one = Encoded().followed_by(first)
    two = one.followed_by(second)
    three = two.followed_by(deepcopy(second))
    assert [a is b for a, b in zip(one.pieces, two.pieces, strict=False)] == [True, True, False]
    assert [a is b for a, b in zip(two.pieces, three.pieces, strict=True)] == [True] * 3 + [False]
    assert three.pieces == tuple(map(canonical_json, second))
