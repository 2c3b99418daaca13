"""What changed between two states of a node, in one line; and the node's own line and header."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from runtime.base.fences import label, phrase
from runtime.base.redaction.marks import count_marks
from runtime.context.diffs import line_diff
from runtime.context.sources import ALL_TOKENS, STANDS_IN_SINCE
from runtime.context.states import (
    AnyNode,
    Change,
    FreqKind,
    GroupState,
    Mode,
    NoteState,
    RenderedView,
    ViewState,
    Written,
)

SHOWN_NAMES = 20
"""Names that one line lists of many."""

Names = Callable[[str], str]
"""The variable's name for an ``obj_id``, or the ``obj_id`` itself."""


def count_text(tokens: int) -> str:
    """A token budget as the model reads it: ``1,840`` or ``All``."""
    return "All" if tokens == ALL_TOKENS else f"{tokens:,}"


def listed(names: Sequence[str], most: int = SHOWN_NAMES) -> str:
    """``a, b and 3 more``: the first ``most`` of the names."""
    more = len(names) - most
    if more <= 0:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {more:,} more" if most else f"{more:,}"


def describe_change(before: AnyNode, after: AnyNode, names: Names) -> str:
    """One line on what became different, empty when nothing did that a reader would see."""
    parts: list[str] = []
    if isinstance(before, ViewState) and isinstance(after, ViewState):
        parts += (
            _fault(before, after)
            + _content(before.rendering, after.rendering, changed_by(after))
            + _moves(before, after)
            + _behind(before, after)
        )
    if isinstance(before, GroupState) and isinstance(after, GroupState):
        parts += _members(before, after, names)
    if isinstance(after, NoteState) and before.rendering.text != after.rendering.text:
        parts.append("written anew")
    if after.rendering.note.endswith(STANDS_IN_SINCE) and not before.rendering.note.endswith(
        STANDS_IN_SINCE
    ):
        parts.append("its summary failed")
    parts += _policy(before, after)
    return "; ".join(parts)


def _fault(before: ViewState, after: ViewState) -> list[str]:
    if before.fault == after.fault:
        return []
    if after.fault is None:
        return ["readable again"]
    by = after.written
    since = f" since {statement_of(by)}" if by is not None and by.change is Change.DELETED else ""
    return [f"unreadable ({phrase(after.fault)}){since}; still shows its last known state"]


def statement_of(written: Written) -> str:
    """The statement that did it, as the model reads of it."""
    return f"turn {written.turn}'s statement"


def changed_by(state: ViewState) -> str:
    """What is said of a source that is another now: whose doing it was, if it was the job's."""
    if state.written is None:
        return "its source changed"
    return f"changed by {statement_of(state.written)}"


def _behind(before: ViewState, after: ViewState) -> list[str]:
    """That the source is known to be another than what the view shows."""
    by, told = after.written, before.written if before.dirty.source_changed else None
    # That it may have changed once more is nothing new.
    if told is not None and by is not None:
        told = told.evolve(later=by.later)
    if not after.dirty.source_changed or (before.dirty.source_changed and told == by):
        return []
    if by is None:
        return ["its source has changed since; Refresh() shows it"]
    word = {Change.MAYBE: "may be changed", Change.DELETED: "deleted"}.get(by.change, "changed")
    after_that = {
        (Mode.PAUSED, False): "; Refresh() shows it",
        (Mode.PAUSED, True): "; still shows its last known state",
    }.get((after.mode, by.change is Change.DELETED), "")
    return [f"{word} by {statement_of(by)}{after_that}"]


def _content(before: RenderedView, after: RenderedView, changed: str) -> list[str]:
    if before.fingerprint == after.fingerprint:
        return []
    # Another place, level or budget shows other lines anyway: to count them says nothing of the
    # source.
    if (before.pos, before.lod, before.budget) != (after.pos, after.lod, after.budget):
        return [changed]
    diff = line_diff(before, after)
    if diff.lines:
        return [f"{changed}, +{diff.added} -{diff.removed} lines of those shown"]
    grown = (
        f" ({before.total_lines:,} to {after.total_lines:,} lines)"
        if before.total_lines != after.total_lines
        else ""
    )
    return [f"{changed} outside the lines shown{grown}"]


def _moves(before: ViewState, after: ViewState) -> list[str]:
    if before.pos == after.pos and before.rendering.pos == after.rendering.pos:
        return []
    return [f"now at {label(after.pos)}"]


def _members(before: GroupState, after: GroupState, names: Names) -> list[str]:
    was, now = set(before.members), set(after.members)
    added = [names(m) for m in after.members if m not in was]
    removed = [names(m) for m in before.members if m not in now]
    parts = [f"{word} {listed(of)}" for word, of in (("added", added), ("removed", removed)) if of]
    if before.rendering.text != after.rendering.text:
        seen = {member.obj_id: member.digest for member in before.seen}
        # A member that is new was told as added already, and is not changed as well.
        moved = [m.name for m in after.seen if seen.get(m.obj_id, m.digest) != m.digest]
        because = (
            f" ({', '.join(moved[:5])}{', ...' if len(moved) > 5 else ''} changed)" if moved else ""
        )
        written = after.summary is not None and before.summary != after.summary and not moved
        parts.append("its summary is written" if written else f"summary recomputed{because}")
    return parts


def _policy(before: AnyNode, after: AnyNode) -> list[str]:
    parts: list[str] = []
    if before.lod != after.lod:
        parts.append(f"lod {before.lod} to {after.lod}")
    if before.tokens != after.tokens:
        parts.append(f"tokens {count_text(before.tokens)} to {count_text(after.tokens)}")
    if (before.mode, before.freq) != (after.mode, after.freq):
        parts.append(f"now {_mode(after)}")
    if before.pinned != after.pinned:
        parts.append("unpinned" if after.pinned is None else f"pinned ({phrase(after.pinned)})")
    return parts


def _mode(state: AnyNode) -> str:
    if state.mode == "paused" or state.freq is None:
        return state.mode.value
    if state.freq.kind is FreqKind.PERIODIC:
        return f"running every {state.freq.seconds:g} s"
    every = f"/{state.min_turn_interval}" if state.min_turn_interval > 1 else ""
    return f"running {state.freq.kind.value}{every}"


def header(state: AnyNode, names: Names, *, lod: int, tokens: int) -> str:
    """The line above a node's text: what it is, which part, at which level, and what a reader must
    know of its age.
    """
    name = names(state.obj_id)
    level = f"lod {lod}, {tokens:,} tokens"
    if isinstance(state, GroupState):
        members = listed([names(m) for m in state.members])
        note = (
            f", {state.rendering.note}"
            if state.rendering.note and state.rendering.lod == lod
            else ""
        )
        return f"[{name}: group of {members}, {level}{note}]"
    if isinstance(state, NoteState):
        return f"[{name}: note, {tokens:,} tokens]"
    marks = [level]
    if state.rendering.truncated:
        marks.append("more in the source")
    if state.rendering.note:
        # A note may hold words of the source, and the header is a line of the framework's.
        marks.append(phrase(state.rendering.note))
    if masked := count_marks(state.rendering.text):
        marks.append(f"{masked} {'value' if masked == 1 else 'values'} masked")
    if state.fault is not None:
        marks.append(f"last known state, now unreadable: {phrase(state.fault)}")
    elif state.dirty.source_changed:
        marks.append(f"{_since(state)}; Refresh() shows it")
    return f"[{name}: view of {label(state.path)} {lines_of(state.rendering)}, {', '.join(marks)}]"


def _since(state: ViewState) -> str:
    change = Change.CHANGED if state.written is None else state.written.change
    if change is Change.DELETED:
        return "source deleted since"
    return f"source {'may have ' if change is Change.MAYBE else ''}changed since"


def lines_of(rendering: RenderedView) -> str:
    """``lines 120:180 of 900``: 0-based, the end exclusive, as in a slice."""
    return f"lines {rendering.first_line}:{rendering.last_line} of {rendering.total_lines:,}"


def table_line(state: AnyNode, name: str, *, changed: bool) -> str:
    """One handle's line in the handle table."""
    if isinstance(state, NoteState):
        parts = [f"{name} = note"]
    else:
        what = (
            f"{label(state.path)}@{label(state.pos)}"
            if isinstance(state, ViewState)
            else f"{len(state.members)} members"
        )
        parts = [f"{name} = {state.obj_type} {what}", _mode(state), f"lod {state.lod}"]
    parts.append(f"{state.rendering.tokens:,}/{count_text(state.tokens)} tokens")
    if state.pinned is not None:
        parts.append("pinned")
    if isinstance(state, ViewState) and state.fault is not None:
        parts.append("unreadable")
    if state.dirty.any:
        parts.append("stale" if state.dirty.source_changed else "due")
    if changed:
        parts.append("changed")
    return " | ".join(parts)


def small_digest(state: AnyNode, digest: str) -> Mapping[str, object]:
    """The fields that identify a state without its texts (``GetDigest`` and the archive's
    records).
    """
    small: dict[str, object] = {
        "obj_id": state.obj_id,
        "type": state.obj_type,
        "digest": digest,
        "mode": state.mode.value,
        "freq": None if state.freq is None else state.freq.spelled(),
        "lod": state.lod,
        "tokens": state.tokens,
        "shown_tokens": state.rendering.tokens,
        "dirty": state.dirty.any,
        "pinned": state.pinned,
    }
    if isinstance(state, GroupState):
        return small | {"members": list(state.members)}
    if isinstance(state, NoteState):
        return small | {"lines": len(state.rendering.text.splitlines())}
    return small | {
        "path": state.path,
        "pos": state.pos,
        "lines": [
            state.rendering.first_line,
            state.rendering.last_line,
            state.rendering.total_lines,
        ],
        "fingerprint": state.rendering.fingerprint,
        "fault": state.fault,
    }
