"""How far messages are still what they were: a turn's work is for those that are new."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count
from operator import ne
from typing import Any

_UNLIKE = object()
"""Stands for a message that counts as new each time: 1, 1.0 and True are equal, and their JSON is
not.
"""


def comparable(message: Any) -> Any:
    """The message, to be compared with others: one of texts alone, else what nothing is equal
    to.
    """
    return message if _is_text(message) else _UNLIKE


def unchanged(before: Sequence[Any], now: Sequence[Any]) -> int:
    """How many messages, from the first on, are equal to those that were ``comparable``."""
    # In C, item by item up to the first that differs: a long prompt has thousands of messages.
    return next(compress(count(), map(ne, before, now)), min(len(before), len(now)))


def _is_text(value: Any) -> bool:
    """Whether nothing but texts, and what holds them, is in a value of JSON's kinds."""
    if type(value) is dict:
        return all(type(name) is str and _is_text(item) for name, item in value.items())
    if type(value) is list:
        return all(map(_is_text, value))
    return value is None or type(value) is str
