"""What a model is shown to sum a group up: its members' texts, as the group knows them.

A member that is a group stands there with its own summary, so a summary of summaries is made from
the inside out. Names of variables are no part of it: two jobs with equal members share one summary,
and a renamed variable asks for no new one.
"""

from __future__ import annotations

from collections.abc import Callable

from runtime.base.digests import digest_of
from runtime.context.diffs import fit_lines
from runtime.context.states import AnyNode, ContextValue, GroupState, NoteState
from runtime.context.store import NodeStore

MATERIAL_TOKENS = 12_000
"""So much of its members' texts a group is summed up from."""


class Part(ContextValue):
    """One member: what it is, and its text."""

    what: str
    text: str


class Material(ContextValue):
    """The members in their order, within ``MATERIAL_TOKENS``."""

    parts: tuple[Part, ...]


def material_of(store: NodeStore, group: GroupState) -> Material:
    """What a summary of ``group`` would be made from now.

    Members share the room equally; what is cut says so.
    """
    parts = [_part(store.nodes[member]) for member in group.members]
    sizes = [store.count(part.text) for part in parts]
    if sum(sizes) > MATERIAL_TOKENS:
        share = MATERIAL_TOKENS // len(parts)
        parts = [
            part if size <= share else part.evolve(text=_cut(part.text, share, store.count))
            for part, size in zip(parts, sizes, strict=True)
        ]
    return Material(parts=tuple(part for part in parts if part.text.strip()))


def basis_of(store: NodeStore, group: GroupState) -> str:
    """The digest of what a summary of ``group`` depends on: equal basis, equal summary."""
    parts = [_part(store.nodes[member]).model_dump() for member in group.members]
    return digest_of([parts, group.tokens])


def _part(state: AnyNode) -> Part:
    if isinstance(state, NoteState):
        return Part(what="a note", text=state.rendering.text)
    if isinstance(state, GroupState):
        text = (
            state.summary.text
            # With a note, something stands in: the summary is of members as they were.
            if state.summary is not None and not state.rendering.note
            else state.rendering.text
        )
        return Part(what=f"a group of {len(state.members)}", text=text)
    unreadable = " (cannot be read now; its last known state)" if state.fault is not None else ""
    return Part(what=state.path + unreadable, text=state.rendering.text)


def _cut(text: str, budget: int, count: Callable[[str], int]) -> str:
    lines = text.splitlines()
    kept = fit_lines(lines, max(budget - count(f"\n... {len(lines)} more lines"), 0), count)
    return "\n".join([*kept, f"... {len(lines) - len(kept)} more lines"])
