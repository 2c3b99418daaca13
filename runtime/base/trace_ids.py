"""Ids of traces and spans that every process makes alike, so that none has to tell them another.

The trace of a run is the run's own id, and the span of a turn is made of run and turn: what one
worker sends and what another does belongs together, and nothing of it stands in a history.
"""

from __future__ import annotations

import hashlib


def trace_id(run: str) -> str:
    """The trace of a Temporal run, as 32 hexadecimal digits: its id without the dashes."""
    bare = run.replace("-", "").lower()
    # OpenTelemetry takes an id of zeros for none.
    if len(bare) == 32 and set(bare) <= set("0123456789abcdef") and set(bare) != {"0"}:
        return bare
    return hashlib.sha256(run.encode()).hexdigest()[:32]


def turn_span_id(run: str, turn: int) -> str:
    """The span of a turn, as 16 hexadecimal digits."""
    return hashlib.sha256(f"{run}/{turn}".encode()).hexdigest()[:16]
