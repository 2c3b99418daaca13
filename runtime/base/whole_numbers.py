"""Whole numbers as settings and addresses have them."""

from __future__ import annotations


def whole_number(text: str, most: int) -> int | None:
    """The number that ``text`` is, in ASCII digits, of which it has no more than ``most``; None if
    it is none, or larger.
    """
    # ``isdecimal`` knows the digits of other scripts. By its length first: Python reads no number
    # of thousands of digits.
    if not text.isdecimal() or not text.isascii() or len(text) > len(str(most)):
        return None
    number = int(text)
    return number if number <= most else None
