"""Keeping a prompt within its size, by the least loss first, and never silently (executable-context.md section 8.3).

Views shown in place give way first, the oldest first, each leaving a mark; then the oldest events are condensed into an
extract; then views and groups that must stay are cut to smaller budgets. The contract, the goal and what is pinned stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from runtime.history.content import plain_text
from runtime.history.events import (
    ActionEvent,
    Condensation,
    CondensationSummaryEvent,
    MessageEvent,
    MessageSource,
    ShownEvent,
)
from runtime.history.indices import NoNextIndex
from runtime.job.stops import JobFailed
from runtime.projection.project import MESSAGE_TOKENS, TailPart, tokens_of
from runtime.projection.segments import Segment, SegmentKind

if TYPE_CHECKING:
    from runtime.job.job import Job

SHRINK_BY = 0.75
SHRINK_TIMES = 6
KEEP_EVENTS = 4
EXTRACT_LINES = 40
LEAST_BUDGET = 64
"""Tokens below which a node's text is not cut any further."""


class Fitter:
    """Makes layouts of at most ``limit`` tokens."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._shrunk = 0

    def shrink(self) -> bool:
        """Aim lower from now on. False after ``SHRINK_TIMES`` times."""
        self._shrunk += 1
        self.limit = int(self.limit * SHRINK_BY)
        return self._shrunk <= SHRINK_TIMES

    def fit(self, job: Job, tail: Callable[[], Sequence[TailPart]]) -> tuple[Segment, ...]:
        """The job's layout, with less in it until it fits.

        Raises:
            JobFailed: if what must stay is larger than the limit.
        """
        while True:
            layout = job.projector.layout(job.log.view, job.replies, job.surface, tail())
            over = tokens_of(layout) - self.limit
            if over <= 0:
                return layout
            if not (
                _collapse(job, layout, over, newest=False)
                or _condense(job)
                or _collapse(job, layout, over, newest=True)
                or _cut(job, layout)
            ):
                raise JobFailed(
                    f"the prompt has {tokens_of(layout):,} tokens when all that may be left out is left out; "
                    f"context_tokens allows {self.limit:,}"
                )


def _collapse(job: Job, layout: Sequence[Segment], over: int, *, newest: bool) -> bool:
    """Leave out views in place, the oldest first; those behind the last reply only if ``newest``."""
    kept = frozenset() if newest else _made_last(layout)
    collapsed = job.surface.collapsed
    before = len(collapsed)
    for segment in layout:
        obj_id = segment.origin.removeprefix("node:")
        if over <= 0:
            break
        if segment.kind is SegmentKind.VIEW and obj_id not in kept and job.graph.state(obj_id).pinned is None:
            collapsed[obj_id] = None
            over -= segment.tokens
    return len(collapsed) > before


def _made_last(layout: Iterable[Segment]) -> frozenset[str]:
    """The views that stand behind the last reply: what the model has just asked for."""
    views: set[str] = set()
    for segment in layout:
        if segment.kind is SegmentKind.REPLY:
            views.clear()
        elif segment.kind is SegmentKind.VIEW:
            views.add(segment.origin.removeprefix("node:"))
    return frozenset(views)


def _condense(job: Job) -> bool:
    """Forget the older half of the View's events behind an extract of them."""
    view = job.log.view
    indices = view.manipulation_indices
    try:
        start = indices.find_next(0)
        last = len(view) - KEEP_EVENTS
        stop = indices.find_previous(max(last, start))
        half = indices.find_next(start + max(1, (stop - start) // 2))
    except NoNextIndex:
        return False
    stop = min(half, stop)
    forgotten = view.forgettable(start, stop)
    events = [event for event in view[start:stop] if event.id in forgotten]
    if not any(not isinstance(event, CondensationSummaryEvent) for event in events):
        return False
    job.log.append(
        Condensation(
            id=job.next_id(),
            turn=job.turn,
            forgotten_event_ids=forgotten,
            summary=_extract(events),
            condenser="extract",
            reason="tokens",
        )
    )
    return True


def _extract(events: Sequence[ShownEvent]) -> str:
    lines: list[str] = []
    for event in events:
        if isinstance(event, CondensationSummaryEvent):
            lines.extend(event.summary.splitlines()[1:])
        elif isinstance(event, ActionEvent) and event.source.strip():
            lines.append(f"turn {event.turn}: {_short(event.source.strip())}")
        elif isinstance(event, MessageEvent) and event.source is MessageSource.USER:
            lines.append(f"turn {event.turn}, the user said: {_short(plain_text(event.content), 400)}")
    left_out = len(lines) - EXTRACT_LINES
    if left_out > 0:
        lines = [f"... {left_out} more lines were dropped ...", *lines[-EXTRACT_LINES:]]
    return "\n".join(["[Earlier turns were condensed for room. First lines of their statements:]", *lines])


def _short(text: str, limit: int = 100) -> str:
    first = text.splitlines()[0] if text else ""
    return first if len(first) <= limit else first[: limit - 1] + "…"


def _cut(job: Job, layout: Sequence[Segment]) -> bool:
    """Halve the largest budget among nodes that are still shown."""
    shown = [s for s in layout if s.origin.startswith("node:") and s.kind in (SegmentKind.VIEW, SegmentKind.GROUP)]
    largest = max(shown, key=lambda segment: segment.tokens, default=None)
    if largest is None or largest.tokens <= LEAST_BUDGET + MESSAGE_TOKENS:
        return False
    obj_id = largest.origin.removeprefix("node:")
    job.surface.shrunk[obj_id] = max(
        LEAST_BUDGET, min(job.surface.shrunk.get(obj_id, largest.tokens), largest.tokens) // 2
    )
    return True
