"""What the parts of a prompt may take, beside what all of it may (``sections:`` of the jobs file,
docs/design.md section 7).

A part that is larger than its section gives way by itself, in the way in which it would for the
whole prompt: views are left out, the oldest first, and what must stay is shown smaller; of what was
said, the older part is condensed.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from runtime.base.spec.models import LEAST_SECTION, Sections
from runtime.job.surface import Surface
from runtime.projection.project import MESSAGE_TOKENS, tokens_of
from runtime.projection.segments import Segment, SegmentKind

TARGET = 0.8
"""What is aimed at once a bound is passed: one larger rewrite is cheaper than a small one in every
turn.
"""

TAIL_SHARE = 0.125
"""What the delta feed and the handle table may each take of a prompt: the tail is paid for in full
in every turn.
"""

NODES = {SegmentKind.VIEW: "views", SegmentKind.GROUP: "groups", SegmentKind.NOTE: "notes"}
"""The sections of nodes."""

_NO_HISTORY = frozenset(
    {
        SegmentKind.CONTRACT,
        SegmentKind.GOAL,
        SegmentKind.DELTA,
        SegmentKind.HANDLES,
        SegmentKind.BUDGET,
        *NODES,
    }
)


def tail_budgets(sections: Sections, limit: int) -> dict[SegmentKind, int]:
    """The budgets of the tail's lists in a prompt of ``limit`` tokens."""
    share = max(LEAST_SECTION, int(limit * TAIL_SHARE))
    return {
        SegmentKind.DELTA: min(sections.feed, share),
        SegmentKind.HANDLES: min(sections.handles, share),
    }


def history_of(layout: Sequence[Segment]) -> int:
    """The tokens of statements, results and messages."""
    return tokens_of(segment for segment in layout if segment.kind not in _NO_HISTORY)


def beyond(sections: Sections, layout: Sequence[Segment]) -> tuple[SegmentKind, int] | None:
    """The first section of nodes that is too large, and by how many tokens it is larger than what
    is then aimed at.
    """
    for kind, name in NODES.items():
        most: int | None = getattr(sections, name)
        size = (
            0 if most is None else tokens_of(segment for segment in layout if segment.kind is kind)
        )
        if most is not None and size > most:
            return kind, size - int(most * TARGET)
    return None


def collapse(
    surface: Surface,
    layout: Sequence[Segment],
    over: int,
    *,
    kept: frozenset[str],
    kind: SegmentKind = SegmentKind.VIEW,
) -> bool:
    """Leave out views, or nodes of another kind, the oldest first, but those in ``kept`` and pinned
    ones.
    """
    nodes = [
        (obj_id, segment)
        for obj_id, segment in _nodes(layout)
        if segment.kind is kind and obj_id not in kept
    ]
    free = [(obj_id, segment.tokens) for obj_id, segment in nodes if not surface.is_pinned(obj_id)]
    return _leave_out(surface, free, over)


def thin_out(surface: Surface, layout: Sequence[Segment], most: int) -> bool:
    """Leave out nodes if there are so many that even the least of each is more than ``most``
    tokens: pinned ones last.

    What is left can be made smaller until it fits, one by one.
    """
    # A message has tokens of its own beside its text: thousands of empty nodes would fill a prompt.
    least = [
        (o, min(segment.tokens, LEAST_SECTION) + MESSAGE_TOKENS) for o, segment in _nodes(layout)
    ]
    return _leave_out(
        surface, _pinned_last(surface, least), sum(tokens for _, tokens in least) - most
    )


def give_up(
    surface: Surface, layout: Sequence[Segment], over: int, kinds: Container[SegmentKind]
) -> bool:
    """Leave out nodes of these kinds, pinned ones and notes too, the oldest first: no job ends for
    the number of its nodes.
    """
    nodes = [(obj_id, s.tokens + MESSAGE_TOKENS) for obj_id, s in _nodes(layout) if s.kind in kinds]
    return _leave_out(surface, _pinned_last(surface, nodes), over)


def _nodes(layout: Sequence[Segment]) -> list[tuple[str, Segment]]:
    """The nodes that are shown, those in front of the tail first, then the one that changed longest
    ago.
    """
    return [
        (segment.origin.removeprefix("node:"), segment)
        for segment in layout
        if segment.kind in NODES
    ]


def _pinned_last(surface: Surface, nodes: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    # The sort is stable: among themselves both kinds stay in their order, the oldest first.
    return sorted(nodes, key=lambda node: surface.is_pinned(node[0]))


def _leave_out(surface: Surface, nodes: Sequence[tuple[str, int]], over: int) -> bool:
    """Leave out the first of ``nodes``, given with their tokens, that have ``over`` tokens
    together.
    """
    # Only what is new counts: a node that is left out already makes nothing smaller, and the rounds
    # must end.
    before = len(surface.collapsed)
    for obj_id, tokens in nodes:
        if over <= 0:
            break
        surface.collapse(obj_id)
        over -= tokens
    return len(surface.collapsed) > before


def made_last(surface: Surface, layout: Sequence[Segment]) -> frozenset[str]:
    """The views that stand behind the last reply: what the model has just asked for."""
    views: set[str] = set()
    for segment in layout:
        # The model saw what stands before this reply when it gave it.
        if segment.kind is SegmentKind.REPLY:
            views.clear()
        elif segment.kind is SegmentKind.VIEW:
            views.add(segment.origin.removeprefix("node:"))
    # Not those in the tail, which stand behind the last reply in any prompt.
    return frozenset(views.intersection(surface.places))


def shrink(
    surface: Surface, layout: Sequence[Segment], kinds: Sequence[SegmentKind], *, least: int
) -> bool:
    """Halve the budget of the largest text of these kinds that is still cut, down to ``least``
    tokens.
    """
    for segment in sorted(layout, key=lambda segment: -segment.tokens):
        if segment.kind not in kinds or segment.tokens <= least + MESSAGE_TOKENS:
            continue
        obj_id = segment.origin.removeprefix("node:")
        of_tail = segment.kind not in NODES
        now = surface.tail_budgets.get(segment.kind) if of_tail else surface.shrunk.get(obj_id)
        smaller = max(least, min(segment.tokens if now is None else now, segment.tokens) // 2)
        # At its least already. Taken once more, the same segment would be chosen for ever.
        if now is not None and smaller >= now:
            continue
        if of_tail:
            surface.tail_budgets[segment.kind] = smaller
        else:
            surface.shrink(obj_id, smaller)
        return True
    return False


def keep_within(sections: Sections, surface: Surface, layout: Sequence[Segment]) -> bool:
    """Leave out or shrink nodes of a section that is too large.

    False if none is, or nothing of it can give way.
    """
    excess = beyond(sections, layout)
    if excess is None:
        return False
    kind, over = excess
    return (
        (
            kind is SegmentKind.VIEW
            and collapse(surface, layout, over, kept=made_last(surface, layout))
        )
        or shrink(surface, layout, (kind,), least=LEAST_SECTION)
        or collapse(surface, layout, over, kept=frozenset(), kind=kind)
        or (kind is SegmentKind.NOTE and give_up(surface, layout, over, (kind,)))
    )
