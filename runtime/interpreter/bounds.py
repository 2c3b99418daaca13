"""How large a value may be that leaves the interpreter.

Walking a larger one would hold up the worker.
"""

from __future__ import annotations

from typing import Any

MAX_ITEMS = 100_000
"""Values inside one value, itself included."""

MAX_CHARS = 1 << 20
"""Characters and bytes of all texts inside one value, the digits of its numbers included."""

_LONG_BITS = 64
_BITS_A_DIGIT = 3
"""Somewhat less than a decimal digit has.

Writing a long number takes longer than its digits say, so it is counted by them.
"""

TOO_LARGE = (
    f"too large to leave the statement (at most {MAX_ITEMS:,} values and {MAX_CHARS:,} characters)"
)

NO_KEY = "an object of a class, as a key of a dict or in a set, cannot leave the statement"
"""What is said of a value that the host cannot hold: to it such an object has no hash."""


def too_large(value: Any) -> bool:
    """Whether ``value`` is past a bound; looks at no more of it than the bounds allow."""
    stack, items, chars = [value], 0, 0
    while stack:
        one = stack.pop()
        items += 1
        if isinstance(one, str | bytes):
            chars += len(one)
        elif isinstance(one, int):
            bits = one.bit_length()
            chars += bits // _BITS_A_DIGIT if bits > _LONG_BITS else 0
        elif isinstance(one, BaseException):
            stack.extend(one.args)
        elif isinstance(one, list | tuple | set | frozenset):
            # Before it is put on the stack: a container's length alone may be past the bound.
            if items + len(stack) + len(one) > MAX_ITEMS:
                return True
            stack.extend(one)
        elif isinstance(one, dict):
            if items + len(stack) + 2 * len(one) > MAX_ITEMS:
                return True
            stack.extend(one)
            stack.extend(one.values())
        if items > MAX_ITEMS or chars > MAX_CHARS:
            return True
    return False
