"""Limits of time that run out in a test when it says so, on however busy a machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import pytest


@contextmanager
def still_until(module: ModuleType, condition: Callable[[], bool]) -> Iterator[None]:
    """Have the clock by which ``module`` measures stand still until ``condition`` holds."""
    still = time.monotonic()

    def monotonic() -> float:
        return time.monotonic() if condition() else still

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "time", SimpleNamespace(monotonic=monotonic))
        yield
