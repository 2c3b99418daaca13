"""Keeping a prompt within its size, by the least loss first, and never silently (executable-context.md section 8.3).

Views shown on their own give way first, the oldest first, each leaving a mark; then the older events are condensed into an
extract; then what the last statement asked for gives way, and what must stay is cut to smaller budgets. The contract, the
goal and what is pinned stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from runtime.context.diffs import fit_lines
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
TARGET = 0.8
"""What is aimed at once the limit is passed: one larger rewrite is cheaper than a small one in every turn."""

KEEP_EVENTS = 4
"""The newest events of the View, which are condensed only when nothing else helps."""

TAIL_SHARE = 0.125
"""What the delta feed and the handle table may each take of a prompt."""

EXTRACT_SHARE = 0.1
"""What an extract may take of a prompt."""

EXTRACT_LINES = 40
LEAST_BUDGET = 64
"""Tokens below which a text is not cut any further."""

_HEAD = "[Earlier turns were condensed for room. First lines of their statements:]"
_DROPPED = re.compile(r"\.\.\. (\d+) more lines were dropped \.\.\.")
_CUTTABLE = (SegmentKind.VIEW, SegmentKind.GROUP, SegmentKind.DELTA, SegmentKind.HANDLES)


class Fitter:
    """Makes layouts of at most ``limit`` tokens."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._shrunk = 0
        self._size = limit

    def shrink(self) -> bool:
        """Aim lower than the last layout from now on. False after ``SHRINK_TIMES`` times."""
        self._shrunk += 1
        self.limit = int(min(self.limit, self._size) * SHRINK_BY)
        return self._shrunk <= SHRINK_TIMES

    def fit(self, job: Job, tail: Callable[[], Sequence[TailPart]]) -> tuple[Segment, ...]:
        """The job's layout, with less in it until it fits. Each step leaves less that could be left out, so it ends.

        Raises:
            JobFailed: if what must stay is larger than the limit.
        """
        target = self.limit
        for kind in (SegmentKind.DELTA, SegmentKind.HANDLES):
            job.surface.tail_budgets[kind] = max(LEAST_BUDGET, int(self.limit * TAIL_SHARE))
        while True:
            job.surface.look(job.log.view)
            layout = job.projector.layout(job.log.view, job.replies, job.surface, tail())
            self._size = tokens_of(layout)
            if self._size <= target:
                return layout
            target = int(self.limit * TARGET)
            over = self._size - target
            if _collapse(job, layout, over, kept=_made_last(job, layout)) or _condense(
                job, self.limit, keep=KEEP_EVENTS
            ):
                continue
            over = self._size - self.limit
            if over <= 0:
                return layout
            if not (
                _collapse(job, layout, over, kept=frozenset())
                or _cut(job, layout, least=max(LEAST_BUDGET, self.limit // 8))
                or _condense(job, self.limit, keep=0)
                or _cut(job, layout, least=LEAST_BUDGET)
                or _collapse(job, layout, over, kept=frozenset(), kind=SegmentKind.GROUP)
            ):
                raise JobFailed(
                    f"the prompt has {self._size:,} tokens when all that may be left out is left out; "
                    f"context_tokens allows {self.limit:,}"
                )


def _collapse(
    job: Job, layout: Sequence[Segment], over: int, *, kept: frozenset[str], kind: SegmentKind = SegmentKind.VIEW
) -> bool:
    """Leave out views, or nodes of another kind, the oldest first, but those in ``kept`` and pinned ones."""
    collapsed = job.surface.collapsed
    before = len(collapsed)
    for segment in layout:
        obj_id = segment.origin.removeprefix("node:")
        if over <= 0:
            break
        if segment.kind is kind and obj_id not in kept and job.graph.state(obj_id).pinned is None:
            collapsed[obj_id] = None
            over -= segment.tokens
    return len(collapsed) > before


def _made_last(job: Job, layout: Iterable[Segment]) -> frozenset[str]:
    """The views that stand behind the last reply: what the model has just asked for."""
    views: set[str] = set()
    for segment in layout:
        if segment.kind is SegmentKind.REPLY:
            views.clear()
        elif segment.kind is SegmentKind.VIEW:
            views.add(segment.origin.removeprefix("node:"))
    return job.surface.places & views


def _condense(job: Job, limit: int, *, keep: int) -> bool:
    """Forget the older half of the View's events, but the last ``keep``, behind an extract of them."""
    view = job.log.view
    indices = view.manipulation_indices
    try:
        start = indices.find_next(0)
        stop = indices.find_previous(max(len(view) - keep, start))
        # An extract of extracts alone would win nothing: go on to the first event that is none.
        fresh = next(i for i in range(start, stop) if not isinstance(view[i], CondensationSummaryEvent))
        half = indices.find_next(max(fresh + 1, start + (stop - start) // 2))
    except (NoNextIndex, StopIteration):
        return False
    stop = min(half, stop)
    forgotten = view.forgettable(start, stop)
    events = [event for event in view[start:stop] if event.id in forgotten]
    if all(isinstance(event, CondensationSummaryEvent) for event in events):
        return False
    job.log.append(
        Condensation(
            id=job.next_id(),
            turn=job.turn,
            forgotten_event_ids=forgotten,
            summary=_extract(events, int(limit * EXTRACT_SHARE), job.count),
            condenser="extract",
            reason="tokens",
        )
    )
    return any(view.position(event.id) is None for event in events)


def _extract(events: Sequence[ShownEvent], budget: int, count: Callable[[str], int]) -> str:
    """One line for each statement and user message, the newest within ``budget`` tokens, and how many are gone."""
    lines: list[str] = []
    dropped = 0
    for event in events:
        if isinstance(event, CondensationSummaryEvent):
            for line in event.summary.splitlines()[1:]:
                if match := _DROPPED.fullmatch(line):
                    dropped += int(match[1])
                else:
                    lines.append(line)
        elif isinstance(event, ActionEvent) and event.source.strip():
            lines.append(f"turn {event.turn}: {_short(event.source.strip())}")
        elif isinstance(event, MessageEvent) and event.source is MessageSource.USER:
            lines.append(f"turn {event.turn}, the user said: {_short(plain_text(event.content), 400)}")
    newest = fit_lines(lines[::-1][:EXTRACT_LINES], budget, count)[::-1]
    dropped += len(lines) - len(newest)
    if dropped:
        newest.insert(0, f"... {dropped} more lines were dropped ...")
    return "\n".join([_HEAD, *newest])


def _short(text: str, limit: int = 100) -> str:
    first = text.splitlines()[0] if text else ""
    return first if len(first) <= limit else first[: limit - 1] + "…"


def _cut(job: Job, layout: Sequence[Segment], *, least: int) -> bool:
    """Halve the budget of the largest text that is still cut, down to ``least`` tokens."""
    surface = job.surface
    for segment in sorted(layout, key=lambda segment: -segment.tokens):
        if segment.kind not in _CUTTABLE or segment.tokens <= least + MESSAGE_TOKENS:
            continue
        obj_id = segment.origin.removeprefix("node:")
        of_tail = segment.kind in (SegmentKind.DELTA, SegmentKind.HANDLES)
        now = surface.tail_budgets.get(segment.kind) if of_tail else surface.shrunk.get(obj_id)
        smaller = max(least, min(segment.tokens if now is None else now, segment.tokens) // 2)
        if now is not None and smaller >= now:
            continue
        if of_tail:
            surface.tail_budgets[segment.kind] = smaller
        else:
            surface.shrunk[obj_id] = smaller
        return True
    return False
