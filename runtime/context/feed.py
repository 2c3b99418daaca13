"""The delta feed: what became different since the last projection, one line a node, with the diff where a source changed."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.context.describe import describe_change
from runtime.context.diffs import diff_text
from runtime.context.states import AnyNode, RenderedView, ViewState
from runtime.context.store import NodeStore

DETAIL_TOKENS = 400
"""The bound of one delta's diff, and the node's own budget where that is smaller."""


@dataclass(frozen=True)
class Delta:
    """One node's change: ``name`` is its variable or its id; ``summary`` one line; ``detail`` a unified diff or empty."""

    obj_id: str
    obj_type: str
    name: str
    summary: str
    detail: str = ""

    def text(self) -> str:
        """The delta as the model reads it."""
        head = f"{self.name}: {self.summary}"
        return f"{head}\n{self.detail}" if self.detail else head


def pending(store: NodeStore) -> tuple[Delta, ...]:
    """The feed as it stands, in creation order: several changes of a node are one, from what was shown to what is."""
    deltas: list[Delta] = []
    for obj_id, after in store.nodes.items():
        before = store.shown_before.get(obj_id)
        if before is None:
            # Not touched, or made since: what is new in it stands where the statement that made it stands.
            continue
        summary = describe_change(before, after, store.name)
        if summary:
            detail = _detail(store, before, after)
            deltas.append(Delta(obj_id, after.obj_type, store.name(obj_id), summary, detail))
    return tuple(deltas)


def _detail(store: NodeStore, before: AnyNode, after: AnyNode) -> str:
    old, new = before.rendering, after.rendering
    if not isinstance(after, ViewState) or old.fingerprint == new.fingerprint or _asked(old) != _asked(new):
        return ""
    if old.text == new.text:
        return ""
    budget = DETAIL_TOKENS if after.tokens < 0 else min(DETAIL_TOKENS, after.tokens)
    return diff_text(old, new, budget, store.count)


def _asked(rendering: RenderedView) -> tuple[str, int, int]:
    return rendering.pos, rendering.budget, rendering.lod
