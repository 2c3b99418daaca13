"""Records without what differs between two equal jobs: times, and what is counted in them."""

from __future__ import annotations

import re
from typing import Any

from runtime.projection.segments import Segment, SegmentKind

# An execution's cost is the time it took.
_TIMES = {"started_at", "ended_at", "finished_at", "cost", "timestamp"}
_TIME_LEFT = re.compile(r"\S+ left(; deadline in [^];]+)?(?=[];])")


def segment_without_times(segment: Segment) -> dict[str, Any]:
    """A segment; the line of budgets tells the time left, so that is taken out of it."""
    shown = segment.model_dump(mode="json")
    if segment.kind is SegmentKind.BUDGET:
        return {**shown, "text": _TIME_LEFT.sub("", segment.text), "tokens": None}
    return shown


def without_times(value: Any) -> Any:
    """``value`` without the times in it, however deep."""
    match value:
        case dict():
            return {key: without_times(item) for key, item in value.items() if key not in _TIMES}
        case list():
            return [without_times(item) for item in value]
        case _:
            return value
