"""Keeping a prompt within its size, by the least loss first, and never silently (executable-context.md section 8.3).

Views shown on their own give way first, the oldest first, each leaving a mark; then the older events are condensed by the
job's condenser, and if that does not help by a hard reset; then what the last statement asked for gives way, and what must
stay is cut to smaller budgets. The contract, the goal and what is pinned stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from runtime.job.condensing import Condensing, SummaryTask
from runtime.job.stops import JobFailed
from runtime.job.window import learned_limit
from runtime.projection.project import MESSAGE_TOKENS, TailPart
from runtime.projection.segments import Segment, SegmentKind
from runtime.values import Usage

if TYPE_CHECKING:
    from runtime.job.job import Job

TARGET = 0.8
"""What is aimed at once the limit is passed: one larger rewrite is cheaper than a small one in every turn."""

TAIL_SHARE = 0.125
"""What the delta feed and the handle table may each take of a prompt."""

ROOM, CONDENSED = "left out for room", "condensed"
"""Why a prompt was rewritten."""

SECTIONS = {SegmentKind.DELTA: 4_000, SegmentKind.HANDLES: 3_000}
"""The most tokens of these, however large the window is: the tail is paid for in full in every turn."""

LEAST_BUDGET = 64
"""Tokens below which a text is not cut any further."""

_CUTTABLE = (SegmentKind.VIEW, SegmentKind.GROUP, SegmentKind.NOTE, SegmentKind.DELTA, SegmentKind.HANDLES)


class Fitter:
    """Makes layouts of at most ``limit`` tokens."""

    def __init__(self, limit: int, condensing: Condensing) -> None:
        self.limit = limit
        self.condensing = condensing
        self.size = limit
        self._stated = limit
        self._refused = False

    def refused(self, words: str) -> None:
        """A provider found the last layout too long, and said ``words``: its window is smaller than was stated."""
        self.limit = learned_limit(words, min(self.size, self.limit))
        self._refused = True

    def called(self, usage: Usage) -> None:
        """The last layout was not too long."""
        self._refused = False
        self.condensing.called(usage)

    def fit(self, job: Job, tail: Callable[[], Sequence[TailPart]]) -> tuple[Segment, ...] | SummaryTask:
        """The job's layout, with less in it until it fits; or a summary that must be written before it can be made.

        Each step leaves less that could be left out, so it ends.

        Raises:
            JobFailed: if what must stay is larger than the limit.
        """
        if self.condensing.waiting is not None:
            return self.condensing.waiting
        target = self.limit
        for kind, most in SECTIONS.items():
            job.surface.tail_budgets[kind] = max(LEAST_BUDGET, min(int(self.limit * TAIL_SHARE), most))
        while True:
            job.surface.look(job.log.view, job.turn)
            if self.condensing.taken and CONDENSED not in job.places.reasons:
                # Also after a summary that was waited for: what stands behind it is written anew.
                job.places.flush(job.surface, CONDENSED)
            layout = job.projector.layout(job.log.view, job.replies, job.surface, tail())
            self.size = job.projector.tokens
            if self.size > target:
                target = int(self.limit * TARGET)
                if job.places.behind(job.surface) and job.places.flush(job.surface, ROOM):
                    continue
                if _collapse(job, layout, self.size - target, kept=_made_last(job, layout)):
                    job.places.flush(job.surface, ROOM)
                    continue
            outcome = self._less(job, layout)
            if isinstance(outcome, SummaryTask):
                return outcome
            if not outcome:
                return layout
            job.surface.look(job.log.view, job.turn)
            job.places.flush(job.surface, CONDENSED if self.condensing.taken else ROOM)

    def _less(self, job: Job, layout: Sequence[Segment]) -> bool | SummaryTask:
        """Leave out more, by the least loss. False if the layout fits, and nobody asks for less."""
        condensing, size, limit = self.condensing, self.size, self.limit
        over = size - limit
        outcome = condensing.due(job, size, limit, refused=self._refused and over > 0)
        if outcome or over <= 0:
            return outcome
        # A window that turned out to be smaller is not what the user chose, so it may cost what "none" would keep.
        may_forget = not condensing.never or limit < self._stated
        outcome = (
            (may_forget and condensing.reset(job, size, limit))
            or _collapse(job, layout, over, kept=frozenset())
            or _cut(job, layout, least=max(LEAST_BUDGET, limit // 8))
            or (may_forget and condensing.last_resort(job, size, limit))
            or _cut(job, layout, least=LEAST_BUDGET)
            or _collapse(job, layout, over, kept=frozenset(), kind=SegmentKind.GROUP)
        )
        if outcome:
            return outcome
        raise JobFailed(self._too_large(may_forget))

    def _too_large(self, may_forget: bool) -> str:
        allows = "context_tokens allows" if self.limit == self._stated else "the model's window leaves room for"
        kept = "" if may_forget else "; condenser: none keeps all turns"
        return f"the prompt has {self.size:,} tokens when all that may be left out is left out; {allows} {self.limit:,}{kept}"


def _collapse(
    job: Job, layout: Sequence[Segment], over: int, *, kept: frozenset[str], kind: SegmentKind = SegmentKind.VIEW
) -> bool:
    """Leave out views, or nodes of another kind, the oldest first, but those in ``kept`` and pinned ones."""
    before = len(job.surface.collapsed)
    for segment in layout:
        obj_id = segment.origin.removeprefix("node:")
        if over <= 0:
            break
        if segment.kind is kind and obj_id not in kept and job.graph.state(obj_id).pinned is None:
            job.surface.collapse(obj_id)
            over -= segment.tokens
    return len(job.surface.collapsed) > before


def _made_last(job: Job, layout: Iterable[Segment]) -> frozenset[str]:
    """The views that stand behind the last reply: what the model has just asked for."""
    views: set[str] = set()
    for segment in layout:
        if segment.kind is SegmentKind.REPLY:
            views.clear()
        elif segment.kind is SegmentKind.VIEW:
            views.add(segment.origin.removeprefix("node:"))
    return frozenset(views.intersection(job.surface.places))


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
            surface.shrink(obj_id, smaller)
        return True
    return False
