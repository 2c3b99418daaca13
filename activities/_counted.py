"""What a call used as we count it: for what its provider does not say, or what cannot be."""

from __future__ import annotations

from activities._answer import Answer
from runtime.base.tokens import encoding
from runtime.base.values import Usage
from runtime.projection.segments import thought_of


def reply_tokens(answer: Answer, encoding_name: str) -> int:
    """What the reply counts in later prompts: its text, its calls and its thinking."""
    count = encoding(encoding_name).count
    calls = sum(count(call.name) + count(call.arguments) for call in answer.tool_calls)
    return count(answer.text) + calls + sum(count(thought_of(block)) for block in answer.thinking)


def counted_usage(prompt: int, reply: int) -> Usage:
    """The usage of a call whose provider says nothing of it."""
    return Usage(prompt=prompt, completion=reply, reported=False)


def filled(usage: Usage, ours: Usage) -> Usage:
    """``usage`` as its provider said, with ``ours`` in place of what it leaves out, or says that it
    was nothing.
    """
    prompt, completion = usage.prompt or ours.prompt, usage.completion or ours.completion
    if (prompt, completion) == (usage.prompt, usage.completion):
        return usage
    return usage.model_copy(update={"prompt": prompt, "completion": completion, "reported": False})


def at_least(usage: Usage, reply: int) -> Usage:
    """``usage`` with no fewer tokens of the reply than were counted of it."""
    if usage.completion >= reply:
        return usage
    return usage.model_copy(update={"completion": reply, "reported": False})
