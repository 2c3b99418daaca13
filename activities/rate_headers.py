"""Who hears what the headers of a model's reply say of its account's rate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar

listening: ContextVar[Callable[[Mapping[str, str]], None] | None] = ContextVar(
    "listening", default=None
)
"""Set where somebody steers a rate by them."""


def tell(headers: Mapping[str, str]) -> None:
    """Have whoever listens hear the headers of a reply."""
    if (hear := listening.get()) is not None:
        hear(headers)
