"""The handle table: a line for each node that a variable holds, and for each running or pinned one
that none does.

Lines are kept from prompt to prompt. Where not all fit, those that are most likely to matter are
shown: of nodes that have just changed, of pinned and of running ones, then of the newest; the rest
is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from runtime.context.describe import table_line
from runtime.context.index import creation_order
from runtime.context.states import AnyNode
from runtime.context.store import NodeStore


@dataclass(frozen=True)
class Table:
    """The lines of a table, and the tokens of each with the end of its line."""

    lines: tuple[str, ...]
    tokens: tuple[int, ...]

    @property
    def text(self) -> str:
        """The lines as they stand in the prompt."""
        return "\n".join(self.lines)


@dataclass(frozen=True)
class _Line:
    state: AnyNode
    label: str
    changed: bool
    text: str
    tokens: int


class HandleTable:
    """The table of one store. ``changed`` says whether a node's line has the word."""

    def __init__(self, store: NodeStore, changed: Callable[[str], bool]) -> None:
        self._store = store
        self._changed = changed
        self._names: Mapping[str, str] = {}
        self._labels: dict[str, str] = {}
        self._lines: dict[str, _Line] = {}

    def of(self, names: Mapping[str, str], budget: int | None) -> Table:
        """The table for these variables, by the nodes' ids, within ``budget`` tokens (None: no
        bound).
        """
        if not same_names(names, self._names):
            # Only where the variables are others: a job may have thousands, and asks in every turn.
            held: dict[str, list[str]] = {}
            for name, obj_id in names.items():
                held.setdefault(obj_id, []).append(name)
            self._labels = {obj_id: ", ".join(held[obj_id]) for obj_id in creation_order(held)}
        self._names = names
        index = self._store.index
        listed = len(self._labels) + len(
            (index.running.keys() | index.pinned.keys()) - self._labels.keys()
        )
        chosen: dict[str, _Line] = {}
        left = float("inf") if budget is None else budget
        for obj_id in self._by_weight():
            if obj_id in chosen or obj_id not in self._store.nodes:
                continue
            line = self._line(obj_id)
            left -= line.tokens
            if left < 0:
                break
            chosen[obj_id] = line
        shown = [chosen[obj_id] for obj_id in creation_order(chosen)]
        lines, tokens = [line.text for line in shown], [line.tokens for line in shown]
        if rest := listed - len(shown):
            lines.append(
                f"... {rest:,} more {'handle' if rest == 1 else 'handles'} left out for room; ls()"
                " lists all"
            )
            tokens.append(self._store.count(lines[-1] + "\n"))
        return Table(tuple(lines), tuple(tokens))

    def _by_weight(self) -> Iterator[str]:
        """The listed nodes, what must be shown first first; some of them twice."""
        index, store = self._store.index, self._store
        kinds = (self._labels, index.running, index.pinned)
        yield from creation_order(
            o for o in (*store.changed, *store.shown_before) if any(o in listed for listed in kinds)
        )
        yield from creation_order(index.pinned)
        yield from creation_order(index.running)
        yield from reversed(self._labels)

    def _line(self, obj_id: str) -> _Line:
        """The node's line, made anew when it changed."""
        state, label = self._store.nodes[obj_id], self._labels.get(obj_id, obj_id)
        changed = self._changed(obj_id)
        made = self._lines.get(obj_id)
        if (
            made is None
            # States are never changed in place: the same object still has the same line.
            or made.state is not state
            or (made.label, made.changed) != (label, changed)
        ):
            text = table_line(state, label, changed=changed)
            made = self._lines[obj_id] = _Line(
                state, label, changed, text, self._store.count(text + "\n")
            )
        return made


def same_names(one: Mapping[str, str], two: Mapping[str, str]) -> bool:
    """Whether the variables are the same, and in the same order: the first of a node's names is the
    one it is called by.
    """
    return one is two or (one == two and list(one) == list(two))
