"""The delta feed: what became different since the last projection, one line a node, with the diff
where a source changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from runtime.base.fences import fenced, one_line
from runtime.context.describe import describe_change
from runtime.context.diffs import diff_text
from runtime.context.index import creation_order
from runtime.context.states import AnyNode, RenderedView, ViewState
from runtime.context.store import NodeStore

DETAIL_TOKENS = 400
"""The bound of one delta's diff, and the node's own budget where that is smaller."""

COUNTED_GROUPS = 8
"""Groups in which changes that are left out are counted one by one."""


@dataclass(frozen=True)
class Delta:
    """One node's change: ``name`` is its variable or its id; ``summary`` one line; ``detail`` a
    unified diff or empty.
    """

    obj_id: str
    obj_type: str
    name: str
    summary: str
    detail: str = ""

    def text(self) -> str:
        """The delta as the model reads it."""
        head = self.head()
        return f"{head}\n{fenced(self.detail)}" if self.detail else head

    def head(self) -> str:
        """The delta without its detail."""
        return one_line(f"{self.name}: {self.summary}")


def pending(store: NodeStore) -> tuple[Delta, ...]:
    """The feed as it stands, in creation order: several changes of a node are one, from what was
    shown to what is.
    """
    deltas: list[Delta] = []
    # What was made since has no state before: what is new in it stands where the statement that
    # made it stands.
    touched = {obj_id: state for obj_id, state in store.shown_before.items() if state is not None}
    for obj_id in creation_order(touched):
        before, after = touched[obj_id], store.nodes[obj_id]
        summary = describe_change(before, after, store.name)
        if summary:
            detail = _detail(store, before, after)
            deltas.append(Delta(obj_id, after.obj_type, store.name(obj_id), summary, detail))
    return tuple(deltas)


def _detail(store: NodeStore, before: AnyNode, after: AnyNode) -> str:
    old, new = before.rendering, after.rendering
    if (
        not isinstance(after, ViewState)
        or old.fingerprint == new.fingerprint
        or _asked(old) != _asked(new)
    ):
        return ""
    if old.text == new.text:
        return ""
    budget = DETAIL_TOKENS if after.tokens < 0 else min(DETAIL_TOKENS, after.tokens)
    return diff_text(old, new, budget, store.count)


def _asked(rendering: RenderedView) -> tuple[str, int, int]:
    return rendering.pos, rendering.budget, rendering.lod


@dataclass(frozen=True)
class Item:
    """A delta as the prompt weighs it: the smaller its ``rank``, the longer it stays; ``group`` is
    the one that shows its node.
    """

    delta: Delta
    rank: int = 0
    group: str | None = None

    def lines(self, *, detailed: bool) -> list[str]:
        """What stands in the prompt. A diff that is left out is told of."""
        if detailed or not self.delta.detail:
            return self.delta.text().split("\n")
        return [f"{self.delta.head()} (diff left out for room)"]


def compressed(
    items: Sequence[Item], budget: int | None, most: int, count: Callable[[str], int]
) -> list[str]:
    """The feed's lines within ``budget`` tokens (None: no bound), of ``most`` items at most, in the
    order given.

    Diffs give way before items, and each that is left out leaves a word; items that are left out
    are counted, group by group. Of both, the highest rank gives way first, and of one rank the
    last.
    """
    # By rank and place: what gives way must be the same in each replay.
    order = sorted(range(len(items)), key=lambda i: (items[i].rank, i))

    def made(kept: int, detailed: int) -> list[str]:
        stay, whole = set(order[:kept]), set(order[:detailed])
        lines = [
            line
            for i, item in enumerate(items)
            if i in stay
            for line in item.lines(detailed=i in whole)
        ]
        return lines + _counted([items[i] for i in sorted(order[kept:])])

    def fits(kept: int, detailed: int) -> bool:
        return budget is None or count("\n".join(made(kept, detailed))) <= budget

    kept = min(most, len(items))
    if fits(kept, kept):
        return made(kept, kept)
    if fits(kept, 0):
        return made(kept, _most(lambda detailed: fits(kept, detailed), kept))
    return made(_most(lambda number: fits(number, 0), kept), 0)


def _most(fits: Callable[[int], bool], end: int) -> int:
    """The largest number below ``end`` that fits, if smaller ones do; 0 if none does."""
    # ``end`` itself was tried before, and does not fit.
    low, high = 0, max(end - 1, 0)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _counted(items: Iterable[Item]) -> list[str]:
    """One line for each group on the changes that are left out, and one for those in none or in
    further groups.
    """
    numbers: dict[str | None, int] = {}
    for item in items:
        numbers[item.group] = numbers.get(item.group, 0) + 1
    in_none = numbers.pop(None, 0)
    groups = sorted((group or "", number) for group, number in numbers.items())
    lines = [f"{_changes(number)} in group {group}" for group, number in groups[:COUNTED_GROUPS]]
    if further := groups[COUNTED_GROUPS:]:
        lines.append(
            f"{_changes(sum(number for _, number in further))} in {len(further):,} other groups"
        )
    return [*lines, _changes(in_none)] if in_none else lines


def _changes(number: int) -> str:
    return f"{number:,} more change{'s' if number > 1 else ''}"
