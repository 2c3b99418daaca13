"""Amounts of money as people read them."""

from __future__ import annotations


def dollars(amount: float) -> str:
    """``$5.00``, and ``$0.0004`` where cents do not tell it: to the ninth digit, as costs are."""
    whole, _, part = f"{amount:.9f}".partition(".")
    return f"${whole}.{part.rstrip('0'):0<2}"
