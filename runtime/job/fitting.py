"""Keeping a prompt within its size, by the least loss first, and never silently
(docs/contract/executable-context.md section 8.3).

Views shown on their own give way first, the oldest first, each leaving a mark; then the older
events are condensed by the job's condenser, and if that does not help by a hard reset; then what
the last statement asked for gives way, and what must stay is cut to smaller budgets. The contract,
the goal and what is pinned stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from runtime.base.spec.models import LEAST_SECTION
from runtime.base.values import Usage, Value
from runtime.job import sections
from runtime.job.condensing import Condensing, SummaryTask
from runtime.job.desk import Desk
from runtime.job.stops import JobFailed
from runtime.job.window import SMALLER, learned_limit
from runtime.projection.project import MESSAGE_TOKENS, TailPart
from runtime.projection.segments import Segment, SegmentKind

ROOM, CONDENSED = "left out for room", "condensed"
"""Why a prompt was rewritten."""

LARGEST = 3
"""Kinds of segments that are named where a prompt cannot be made."""

BAD_REQUEST, WINDOW_FULL = "BadRequestError", "WindowFull"
"""Types of errors of calls whose prompt may have been too long, though nobody says so: a refusal of
another kind, and an empty reply that was cut off.
"""

_CUTTABLE = (
    SegmentKind.VIEW,
    SegmentKind.GROUP,
    SegmentKind.NOTE,
    SegmentKind.DELTA,
    SegmentKind.HANDLES,
)


class SavedFitter(Value):
    """What a checkpoint has of a fitter."""

    limit: int
    size: int
    accepted: int = 0


class Fitter:
    """Makes layouts of at most ``limit`` tokens.

    ``accepted`` is the size of the largest that a model has answered, 0 for none.
    """

    def __init__(self, limit: int, condensing: Condensing) -> None:
        self.limit = limit
        self.condensing = condensing
        self.size = limit
        self.accepted = 0
        self._stated = limit
        self._refused = False

    # What was stated is in the definition; a refusal concerns a prompt of the turn.
    MADE_ANEW: ClassVar[frozenset[str]] = frozenset({"condensing", "_stated", "_refused"})

    def saved(self) -> SavedFitter:
        """For a checkpoint."""
        return SavedFitter(limit=self.limit, size=self.size, accepted=self.accepted)

    def restore(self, saved: SavedFitter) -> None:
        """As it was saved."""
        self.limit, self.size, self.accepted = saved.limit, saved.size, saved.accepted

    def learned(self, words: str) -> int:
        """The most tokens that a layout may have, since a provider found the last one too long, and
        said ``words``.
        """
        return learned_limit(words, min(self.size, self.limit))

    def doubted(self, kind: str) -> int | None:
        """The most tokens that a layout may have, since the last may have been too long by an error
        of type ``kind``, which does not say so. None where that is not likely: a prompt that is no
        larger than others is refused for something else.
        """
        if kind == WINDOW_FULL:
            return int(self.size * SMALLER)
        if kind == BAD_REQUEST and 0 < self.accepted < self.size:
            # What was answered once was not too long, so there is no reason to go below that.
            return max(self.accepted, self.size // 2)
        return None

    def refused(self, limit: int) -> None:
        """The last layout was too long: the window is smaller than was stated, ``limit`` tokens."""
        self.limit = limit
        self.accepted = min(self.accepted, limit)
        self._refused = True

    def called(self, usage: Usage) -> None:
        """The last layout was not too long."""
        self._refused = False
        self.accepted = max(self.accepted, self.size)
        self.condensing.called(usage)

    def fit(
        self, desk: Desk, tail: Callable[[], Sequence[TailPart]]
    ) -> tuple[Segment, ...] | SummaryTask:
        """The job's layout, with less in it until it fits; or a summary that must be written before
        it can be made.

        Each step leaves less that could be left out, so it ends.

        Raises:
            JobFailed: if what must stay is larger than the limit.
        """
        # The prompt must not be made while its summary is written: it would show what is being
        # forgotten.
        if self.condensing.waiting is not None:
            return self.condensing.waiting
        target = self.limit
        # Anew for each prompt: rounds of the prompt before may have halved them.
        desk.surface.tail_budgets.update(sections.tail_budgets(desk.spec.sections, self.limit))
        # Each round changes the surface or the places, which are then looked at anew.
        while True:
            desk.surface.look(desk.log.view, desk.turn)
            if self.condensing.taken and CONDENSED not in desk.places.reasons:
                # Also after a summary that was waited for: what stands behind it is written anew.
                desk.places.flush(desk.surface, CONDENSED)
            layout = desk.projector.layout(desk.log.view, desk.replies, desk.surface, tail())
            self.size = desk.projector.tokens
            # Sections first: what gives way for one may be all that the whole prompt lacks.
            if sections.keep_within(desk.spec.sections, desk.surface, layout):
                desk.places.flush(desk.surface, ROOM)
                continue
            if self.size > target:
                # From here on for a lower mark: to come to just below the limit would mean a
                # rewrite in each turn.
                target = int(self.limit * sections.TARGET)
                if self._made_room(desk, layout, target):
                    continue
            outcome = self._less(desk, layout)
            if isinstance(outcome, SummaryTask):
                return outcome
            if not outcome:
                return layout
            desk.surface.look(desk.log.view, desk.turn)
            desk.places.flush(desk.surface, CONDENSED if self.condensing.taken else ROOM)

    def _made_room(self, desk: Desk, layout: Sequence[Segment], target: int) -> bool:
        """Rewrite places or leave out views, to come to ``target`` tokens; False if there are none
        of either.
        """
        # Such a place costs twice, where it stands and in the messages that tell of it: to rewrite
        # it loses nothing, and may be enough.
        if desk.places.behind(desk.surface) and desk.places.flush(desk.surface, ROOM):
            return True
        kept = sections.made_last(desk.surface, layout)
        if sections.collapse(desk.surface, layout, self.size - target, kept=kept):
            desk.places.flush(desk.surface, ROOM)
            return True
        return False

    def _less(self, desk: Desk, layout: Sequence[Segment]) -> bool | SummaryTask:
        """Leave out more, by the least loss. False if the layout fits, and nobody asks for less."""
        condensing, size, limit = self.condensing, self.size, self.limit
        over = size - limit
        # A refusal asks for less only as long as the layout is larger than what it taught.
        outcome = condensing.due(desk, size, limit, refused=self._refused and over > 0)
        outcome = outcome or self._less_history(desk, layout)
        if outcome or over <= 0:
            return outcome
        # A window that turned out to be smaller is not what the user chose, so it may cost what
        # "none" would keep.
        may_forget = not condensing.never or limit < self._stated
        outcome = (
            (may_forget and condensing.reset(desk, size, limit))
            or sections.collapse(desk.surface, layout, over, kept=frozenset())
            or sections.thin_out(desk.surface, layout, limit // 2)
            or sections.shrink(
                desk.surface, layout, _CUTTABLE, least=max(LEAST_SECTION, limit // 8)
            )
            or (may_forget and condensing.last_resort(desk, size, limit))
            or sections.shrink(desk.surface, layout, _CUTTABLE, least=LEAST_SECTION)
            or sections.collapse(
                desk.surface, layout, over, kept=frozenset(), kind=SegmentKind.GROUP
            )
            or sections.give_up(desk.surface, layout, over, sections.NODES)
        )
        if outcome:
            return outcome
        raise JobFailed(self._too_large(may_forget, layout))

    def _less_history(self, desk: Desk, layout: Sequence[Segment]) -> bool | SummaryTask:
        """Condense what was said, where that alone is larger than its section; once before each
        call.
        """
        most = desk.spec.sections.history
        if most is None or self.condensing.taken or (said := sections.history_of(layout)) <= most:
            return False
        return self.condensing.due(desk, said, most, refused=False)

    def _too_large(self, may_forget: bool, layout: Sequence[Segment]) -> str:
        allows = (
            "context_tokens allows"
            if self.limit == self._stated
            else "the model's window leaves room for"
        )
        kept = "" if may_forget else "; condenser: none keeps all turns"
        sizes: dict[str, int] = {}
        for segment in layout:
            sizes[segment.kind.value] = (
                sizes.get(segment.kind.value, 0) + segment.tokens + MESSAGE_TOKENS
            )
        largest = sorted(sizes.items(), key=lambda size: -size[1])[:LARGEST]
        named = ", ".join(f"{kind} {tokens:,}" for kind, tokens in largest)
        return (
            f"the prompt has {self.size:,} tokens when all that may be left out is left out "
            f"({named}); {allows} {self.limit:,}{kept}"
        )
