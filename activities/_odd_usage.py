"""Responses whose usage is none that litellm can read: text where a number should be, a list where
details should.

litellm makes an error of it, whatever else the response says. The reply is there and paid for, so
litellm reads zeros in its place, and what the call used is counted.
"""

from __future__ import annotations

from typing import Any

from activities._reported_usage import COUNTS, DEEPEST

_NOTHING: dict[str, dict[str, int]] = {
    "usage": dict.fromkeys(
        ("prompt_tokens", "completion_tokens", "total_tokens", "input_tokens", "output_tokens"), 0
    ),
    "usageMetadata": dict.fromkeys(("promptTokenCount", "candidatesTokenCount"), 0),
}
"""What stands in for a usage, by its name."""

_BESIDE = ("prompt_eval_count", "eval_count")
"""Counts that stand in the reply itself."""

_MAPPINGS = ("_details", "cache_creation", "server_tool_use")
"""How names of parts of a usage end that are mappings themselves."""

_LARGEST = 2.0**63
"""Larger numbers with a point are none to litellm."""

USAGE = rb"\"(usage|usageMetadata)\"\s*:\s*[^\sn]|eval_count|\"message_(start|delta)\""
"""A pattern of a usage that is not null, or perhaps one that may not be."""

_DELTA = "message_delta"
_NEEDED = frozenset({"message", _DELTA})
"""What has to have a usage in Anthropic's protocol, by its type."""

_REPLIED: dict[str, int] = {"output_tokens": 0}
"""What stands in where such a stream ends: figures of the prompt would take the place of those with
which it began.
"""


def replace_odd_usage(value: Any) -> bool:
    """Put nothing used in the place of each usage in a response, or in an event, that cannot be
    read; whether there was any.
    """
    return _replaced(value, 0)


def _replaced(value: Any, depth: int) -> bool:
    """Replace what cannot be read in ``value``; whether anything was."""
    # A reply's own JSON may have such names, deep down in its arguments.
    if not isinstance(value, dict) or depth > DEEPEST:
        return False
    replaced, kind = False, str(value.get("type"))
    if kind == "message" and "stop_reason" in value and "usage" not in value:
        value["usage"], replaced = _NOTHING["usage"], True
    for name, part in value.items():
        if name in _NOTHING:
            if kind == _DELTA and isinstance(part, dict) and None in part.values():
                # litellm takes one for a figure, in place of that of the beginning.
                part = {count: figure for count, figure in part.items() if figure is not None}
                value[name], replaced = part, True
            missing = part is None and kind in _NEEDED
            # OpenAI's Responses have all counts.
            if missing or not _is_plain(part, blanks=value.get("object") != "response"):
                value[name], replaced = _REPLIED if kind == _DELTA else _NOTHING[name], True
        elif name in _BESIDE:
            if part is not None and not _is_whole(part):
                value[name], replaced = 0, True
        else:
            replaced |= _replaced(part, depth + 1)
    return replaced


def _is_plain(usage: Any, *, blanks: bool) -> bool:
    """Whether each count of tokens in it is a whole number, and each part of it a mapping."""
    if usage is None:
        return True
    return isinstance(usage, dict) and all(
        (blanks and value is None) or _is_whole(value)
        if COUNTS.search(name)
        else not (isinstance(value, dict) or name.endswith(_MAPPINGS))
        or _is_plain(value, blanks=blanks)
        for name, value in usage.items()
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) or (
        isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST
    )
