"""Limits as people write them."""

from __future__ import annotations


def told_bytes(number: int) -> str:
    """``16 MiB``, ``1.5 GiB``, ``700 bytes``."""
    for unit, size in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if number >= size:
            return f"{number / size:.4g} {unit}"
    return f"{number} bytes"


def told_seconds(seconds: float) -> str:
    """``60 s``, ``0.5 s``."""
    return f"{seconds:g} s"
