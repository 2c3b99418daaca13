"""What happens to a view's state: policy set, a reading applied.

Pure functions from state to state.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from runtime.base.characters import as_literal
from runtime.context.outcomes import Refused
from runtime.context.sources import ReadRequest, ReadResult, ReadStatus, note_after
from runtime.context.states import DIFF_LOD, DirtyFlags, RenderedView, ViewState

Count = Callable[[str], int]


def request_for(
    state: ViewState, *, lod: int | None = None, tokens: int | None = None
) -> ReadRequest:
    """The read that brings ``state`` up to date, or one at another level or budget for a single
    answer.
    """
    level = state.base_lod if lod is None or lod == DIFF_LOD else lod
    budget = state.tokens if tokens is None else tokens
    own = level == state.base_lod and budget == state.tokens
    # At another level or budget there is no earlier text that could be unchanged.
    known = state.rendering.basis or None if own else None
    return ReadRequest(
        obj_id=state.obj_id, path=state.path, pos=state.pos, tokens=budget, lod=level, known=known
    )


def with_policy(
    state: ViewState, *, lod: int | None = None, tokens: int | None = None, pos: str | None = None
) -> ViewState:
    """``state`` with another policy or position; the flags tell whether its rendering still answers
    to them.
    """
    changed = state.evolve(
        lod=state.lod if lod is None else lod,
        base_lod=state.base_lod if lod is None or lod == DIFF_LOD else lod,
        tokens=state.tokens if tokens is None else tokens,
        pos=state.pos if pos is None else pos,
    )
    shown = changed.rendering
    # By what it shows, not by what was set: set back, it is not behind any more.
    dirty = DirtyFlags(
        pos_changed=changed.pos != shown.pos,
        policy_changed=(changed.base_lod, changed.tokens) != (shown.lod, shown.budget),
        source_changed=state.dirty.source_changed,
    )
    return changed.evolve(dirty=dirty)


def is_shown_as_set(state: ViewState) -> bool:
    """Whether the rendering is of the position and by the policy that the view has now."""
    shown = state.rendering
    as_set = (state.pos, state.base_lod, state.tokens) == (shown.pos, shown.lod, shown.budget)
    return as_set and bool(shown.basis)


def rendering_of(request: ReadRequest, result: ReadResult, count: Count) -> RenderedView:
    """The rendering that a successful reading gives."""
    return RenderedView(
        text=result.text,
        tokens=result.tokens or count(result.text),
        lod=request.lod,
        pos=request.pos,
        budget=request.tokens,
        basis=result.basis,
        fingerprint=result.fingerprint,
        first_line=result.first_line,
        last_line=result.last_line,
        total_lines=result.total_lines,
        truncated=result.truncated,
        note=result.note,
    )


def with_reading(
    state: ViewState,
    request: ReadRequest,
    result: ReadResult,
    last_shown: RenderedView | None,
    count: Count,
) -> ViewState:
    """``state`` after its own read: a new rendering, the same one confirmed, or a fault beside the
    last one.

    A failed read clears the flags too: a paused view would otherwise be read, and fail, in every
    turn.
    """
    if result.status is ReadStatus.ERROR:
        return state.evolve(fault=fault_of(result), dirty=DirtyFlags())
    another = result.fingerprint != state.rendering.fingerprint
    # A change that nobody announced was not made by the job, and one that was announced and is not
    # there was undone.
    written = state.written if another == state.dirty.source_changed else None
    read = state.evolve(written=written, fault=None, dirty=DirtyFlags())
    if result.status is ReadStatus.UNCHANGED:
        if not state.rendering.basis:
            raise ValueError(
                f"{state.obj_id} has no rendering, so its reading cannot be 'unchanged'"
            )
        rendering = state.rendering.evolve(pos=request.pos, lod=request.lod, budget=request.tokens)
        return read.evolve(rendering=rendering)
    rendering = rendering_of(request, result, count)
    rendering = rendering.evolve(note=note_after(state.rendering.note, rendering.note))
    # Shown and not read last: several readings may lie between two prompts.
    previous = last_shown if rendering != state.rendering else state.previous
    return read.evolve(rendering=rendering, previous=previous)


def fault_of(result: ReadResult) -> str:
    """The exception of a failed reading, as one line."""
    first_line = result.error_message.splitlines()[0] if result.error_message else ""
    return f"{result.error_type or 'OSError'}: {first_line}".removesuffix(": ")


def scrolled(state: ViewState, delta_lines: int) -> str:
    """The position ``delta_lines`` further on (negative: back), kept within the source as far as it
    is known.
    """
    if state.pos.startswith("/"):
        line, column = _anchored(state), "0"
    elif state.pos.startswith("-"):
        line, column = max(state.rendering.total_lines - int(state.pos[1:]), 0), "0"
    else:
        text, _, column = state.pos.partition(":")
        line = int(text)
    line = max(line + delta_lines, 0)
    # A source without lines (empty, or binary) has no last one.
    if state.rendering.total_lines:
        line = min(line, state.rendering.total_lines - 1)
    return f"{line}:{column or '0'}"


def _anchored(state: ViewState) -> int:
    """The line where the last reading found the anchor's text: the first that has it in the lines
    shown.
    """
    rendering = state.rendering
    if rendering.pos == state.pos and rendering.lod == 0:
        for number, line in enumerate(rendering.text.splitlines()):
            if state.pos[1:] in line:
                return rendering.first_line + number
    raise Refused(
        ValueError,
        f"Scroll: the line of {as_literal(state.pos)} is not among those shown; give SetPos a line,"
        " or Refresh() at lod 0",
    )


def lines_for_tokens(state: ViewState, delta_tokens: int) -> int:
    """About how many lines ``delta_tokens`` are, by the average line of the present rendering; at
    least one.
    """
    shown = max(state.rendering.last_line - state.rendering.first_line, 1)
    per_line = max(state.rendering.tokens / shown, 1.0)
    # No file has so many: a whole number can be larger than any float, and is not divided then.
    lines = max(round(min(abs(delta_tokens), sys.float_info.max) / per_line), 1)
    return lines if delta_tokens > 0 else -lines
