"""Empty replies that were cut off: which of them say that the prompt left no room; and which
prompts are known to have room.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from activities._answer import Answer
from activities._full_windows import has_room, left_no_room
from activities._options import ModelOptions
from runtime.base.values import ToolCall

CALL = ToolCall(id="1", name="python", arguments="{}")


@pytest.mark.parametrize(
    ("said", "tokens", "accepted", "options", "expected"),
    [
        ({}, 5_001, 5_000, {}, True),
        ({}, 5_000, 5_000, {}, False),
        ({}, 5_001, 0, {}, False),
        ({"text": "Well"}, 5_001, 5_000, {}, False),
        ({"tool_calls": (CALL,)}, 5_001, 5_000, {}, False),
        ({"refusal": "No."}, 5_001, 5_000, {}, False),
        ({"finish_reason": "stop"}, 5_001, 5_000, {}, False),
        ({}, 5_001, 5_000, {"max_tokens": 200}, False),
        ({}, 5_001, 5_000, {"max_tokens": 201}, True),
        ({}, 4_000, 5_000, {"name": "openai/gpt-4"}, False),
        ({"prompt": 7_200}, 4_000, 5_000, {"name": "openai/gpt-4"}, True),
    ],
)
def test_which_replies_had_no_room(
    said: dict[str, Any], tokens: int, accepted: int, options: dict[str, Any], expected: bool
) -> None:
    """Only an empty one that was cut off, of a prompt larger than others or near the known window
    (gpt-4 has 8,192 tokens).
    """
    usage = SimpleNamespace(prompt_tokens=said.pop("prompt", tokens), completion_tokens=200)
    fields = {"text": "", "tool_calls": (), "refusal": None, "finish_reason": "length", **said}
    answer = Answer(**fields, thinking=(), response_id="", usage=usage)
    assert (
        left_no_room(answer, tokens, accepted, ModelOptions(**{"name": "openai/local", **options}))
        is expected
    )


@pytest.mark.parametrize(
    ("name", "tokens", "expected"),
    [("openai/gpt-4", 4_096, True), ("openai/gpt-4", 4_097, False), ("openai/local", 10, False)],
)
def test_which_prompts_have_room(name: str, tokens: int, expected: bool) -> None:
    """Of a known window the half; of a model that nobody knows none."""
    assert has_room(tokens, ModelOptions(name=name)) is expected
