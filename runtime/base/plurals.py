"""Numbers of things as people write them."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """``1 turn``, ``1,200 turns``; ``many`` is the plural where it is not ``one`` and an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
