"""Why a segment left the prompts, as the steps around that moment tell it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from runtime.archive.blame import Left
from runtime.archive.forgetting import Forgetting, forgettings
from runtime.archive.forms.told import turn_of
from runtime.archive.gaps import UNREADABLE
from runtime.archive.job import JobArchive
from runtime.projection.segments import Segment, SegmentKind


class Why(StrEnum):
    """What makes a segment leave the prompts."""

    CONDENSATION = "condensation"
    REWRITTEN = "rewritten"
    GROUP = "group"
    BUDGET = "budget"
    CLOSED = "closed"
    TAIL = "tail"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Cause:
    """Why, in words too, and the segment that stands in its place, if one does."""

    why: Why
    told: str
    instead: Segment | None = None


def causes(archive: JobArchive, run: str, gone: Sequence[Left]) -> list[Cause]:
    """Why each left."""
    # What a condensation forgot is told by all before it, so by each step of the run: they are read
    # only if there was one when something left.
    turns = dict.fromkeys(turn for one in gone for turn in range(one.last + 1, one.gone + 1))
    condensed = any(_may_have_condensed(archive, run, turn) for turn in turns)
    forgot = list(forgettings(archive, run)) if condensed else []
    return [_cause(archive, run, one, forgot) for one in gone]


def _may_have_condensed(archive: JobArchive, run: str, turn: int) -> bool:
    try:
        step = archive.find_step(run, turn)
        return step is None or bool(step.condensations)
    except UNREADABLE:
        return True


def _cause(archive: JobArchive, run: str, one: Left, forgot: Sequence[Forgetting]) -> Cause:
    layout = archive.attempt_layout(one.gone_from)
    condensed = next(
        (
            told
            for told in forgot
            if one.last < told.turn <= one.gone and _forgets(told, one.segment)
        ),
        None,
    )
    if condensed is not None:
        return _condensed(condensed, layout)
    instead = next(
        (s for s in layout if s.origin == one.segment.origin and s.kind == one.segment.kind), None
    )
    if one.segment.tail and not one.segment.origin.startswith("node:"):
        return Cause(Why.TAIL, "the end of the prompt is written anew for every turn", instead)
    if one.segment.origin.startswith("node:"):
        instead = instead or next((s for s in layout if s.origin == one.segment.origin), None)
        cause = _of_node(archive, run, one, layout, instead)
        # A view that nobody closed goes with the statement that showed it.
        held = next((told for told in forgot if one.last < told.turn <= one.gone), None)
        return _condensed(held, layout) if cause.why is Why.UNKNOWN and held is not None else cause
    if instead is not None:
        return Cause(Why.REWRITTEN, f"turn {one.gone} says something else there", instead)
    return Cause(Why.UNKNOWN, "no record says why")


def _forgets(told: Forgetting, segment: Segment) -> bool:
    kind, _, name = segment.origin.partition(":")
    if kind == "event":
        return name in told.condensation.forgotten
    # A reply is forgotten with its statement's events: as a whole, or not at all.
    return kind == "statement" and any(
        turn_of(event) == int(name) for event in told.condensation.forgotten
    )


def _condensed(told: Forgetting, layout: Sequence[Segment]) -> Cause:
    first, last = told.turns
    condensation = told.condensation
    turns = f"turn {first}" if first == last else f"turns {first}-{last}"
    stands = f"event:{condensation.stands_in}" if condensation.stands_in is not None else None
    by = f"{condensation.condenser}, {condensation.reason}"
    words = f"condensation {condensation.id} ({by}) forgot {turns}"
    instead = next((segment for segment in layout if segment.origin == stands), None)
    return Cause(Why.CONDENSATION, f"{words}; {stands or 'nothing'} stands in their place", instead)


def _of_node(
    archive: JobArchive, run: str, one: Left, layout: Sequence[Segment], instead: Segment | None
) -> Cause:
    obj_id = one.segment.origin.removeprefix("node:")
    states = [_node(archive, run, turn, obj_id) for turn in (one.last, one.gone)]
    if states[0] is not None and states[1] is None:
        return Cause(Why.CLOSED, f"{obj_id} is a node no more since turn {one.gone}", instead)
    if instead is None or instead.kind is SegmentKind.MARK:
        groups = _groups_of(archive, run, one.gone, obj_id)
        shown = next(
            (s for s in layout if s.kind is SegmentKind.GROUP and s.origin in groups), None
        )
        if shown is not None:
            return Cause(
                Why.GROUP, f"{shown.origin[5:]} shows its summary in place of {obj_id}", shown
            )
    changed = _differing(*states)
    if changed:
        by = f"the statement of turn {one.gone - 1}, or the tick after it"
        return Cause(Why.REWRITTEN, f"{by}, changed {obj_id}: {changed}", instead)
    if states[0] is not None:
        how = "left out" if instead is None or instead.kind is SegmentKind.MARK else "shortened"
        return Cause(
            Why.BUDGET,
            f"{obj_id} itself did not change: it was {how} for room in the prompt",
            instead,
        )
    return Cause(Why.UNKNOWN, "no record says why", instead)


def _nodes(archive: JobArchive, run: str, turn: int) -> Mapping[str, Mapping[str, Any]]:
    try:
        step = archive.find_step(run, turn)
        return {} if step is None else archive.nodes(step.ref)
    except UNREADABLE:
        return {}


def _node(archive: JobArchive, run: str, turn: int, obj_id: str) -> Mapping[str, Any] | None:
    return _nodes(archive, run, turn).get(obj_id)


def _groups_of(archive: JobArchive, run: str, turn: int, obj_id: str) -> dict[str, None]:
    """The origins of the groups that have a node, and of those that have these, from the inside
    out.
    """
    nodes = _nodes(archive, run, turn).items()
    outward = [obj_id]
    # The list grows while it is gone through, so groups of groups are reached in their turn.
    for member in outward:
        outward += [
            group
            for group, state in nodes
            if member in state.get("members", ()) and group not in outward
        ]
    return dict.fromkeys(f"node:{group}" for group in outward[1:])


_BOOKKEEPING = frozenset({"digest", "dirty"})


def _differing(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    """The fields of a node's state that changed: ``lod 0 -> 1, tokens 800 -> 300``."""
    if before is None or after is None:
        return ""
    names = [name for name in after if name not in _BOOKKEEPING and before.get(name) != after[name]]
    told = [f"{name} {_brief(before.get(name))} -> {_brief(after[name])}" for name in names]
    return ", ".join(told) or ("its text" if before.get("digest") != after.get("digest") else "")


def _brief(value: Any) -> str:
    return str(value).removeprefix("sha256:")[:40]
