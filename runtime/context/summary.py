"""A group's text: an extractive summary of its members within the group's budget, or a model's
under its members' names.

In the extract, which is deterministic and needs no model, each member gets a line that names it and
a share of the rest by weight: members that changed since the last summary and pinned ones weigh
three times as much as the others, those that changed a few turns ago twice as much. What a member
leaves of its share goes to the next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.base.fences import label, phrase
from runtime.context.describe import lines_of
from runtime.context.diffs import fit_lines
from runtime.context.sources import ALL_TOKENS
from runtime.context.states import AnyNode, GroupState, NoteState

Count = Callable[[str], int]

LINE_LIMIT = 160
"""Characters after which a line of a summary is cut."""

FIRST_LINES = 3
"""How many non-blank lines from a member's top stand in a summary, beside its structure."""

SALIENT = 3
"""Weight of a changed or pinned member."""

RECENT = 2
"""Weight of a member that changed a short while ago; the others weigh 1."""

RECENT_TURNS = 5
"""How many turns before the group's last change a member's counts as recent."""

LEAST_WRITTEN = 40
"""Tokens that must be left beside the members' names for a model to be asked for a summary."""

_STRUCTURE = re.compile(
    r"""\s*(?:
        (?:export\s+|public\s+|private\s+|protected\s+|internal\s+|static\s+|abstract\s+|final\s+
           |async\s+|pub(?:\([^)]*\))?\s+|default\s+)*
        (?:def|class|function|interface|struct|enum|impl|trait|type|func|fn|mod|module|namespace
           |package|record)\s+\S
        | \#{1,6}\s+\S | [=\-~^]{4,}\s*$ | \[[^\]]+\]\s*$ | [A-Z_][A-Z0-9_]*\s*=\s*\S
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Member:
    """A member as the summary sees it."""

    name: str
    state: AnyNode
    changed: bool
    recent: bool = False

    @property
    def weight(self) -> int:
        """How much of the budget it may have, beside the others."""
        if self.changed or self.state.pinned is not None:
            return SALIENT
        return RECENT if self.recent else 1

    def head(self) -> str:
        """The line that names it."""
        if isinstance(self.state, GroupState):
            return (
                f"{self.name} ({self.state.obj_id}): group of"
                f" {len(self.state.members)}{self._marks()}"
            )
        if isinstance(self.state, NoteState):
            return f"{self.name} ({self.state.obj_id}): note{self._marks()}"
        where = f"{label(self.state.path)} {lines_of(self.state.rendering)}"
        return f"{self.name} ({self.state.obj_id}): {where}{self._marks()}"

    def _marks(self) -> str:
        marks = ["pinned"] if self.state.pinned is not None else []
        fault = getattr(self.state, "fault", None)
        marks += [f"unreadable: {phrase(fault)}"] if fault else []
        return f" [{', '.join(marks)}]" if marks else ""


def summarise(members: Sequence[Member], *, lod: int, budget: int, count: Count) -> str:
    """The group's text at level ``lod`` (0 excerpts, 1 structure, 2 summary) within ``budget``
    tokens.
    """
    heads = [member.head() for member in members]
    if budget != ALL_TOKENS and count("\n".join(heads)) > budget:
        return _too_many(heads, budget, count)
    chosen = _share_out(members, lod, budget, count, spent=count("\n".join(heads)))
    return _assemble(heads, chosen, budget, count)


def room_beside_names(members: Sequence[Member], budget: int, count: Count) -> int:
    """The tokens that a text may have under the members' names; ``ALL_TOKENS`` if nothing bounds
    it.
    """
    return (
        budget
        if budget == ALL_TOKENS
        else max(budget - count("\n".join(m.head() for m in members)) - 1, 0)
    )


def with_names(members: Sequence[Member], text: str, *, budget: int, count: Count) -> str:
    """A written summary under the lines that name the members, within ``budget``."""
    room, lines = room_beside_names(members, budget, count), text.splitlines()
    if room != ALL_TOKENS and count(text) > room:
        lines = fit_lines(lines, room, count)
    return "\n".join([*(member.head() for member in members), *lines])


def _too_many(heads: Sequence[str], budget: int, count: Count) -> str:
    notice = f"... {len(heads)} more members"
    kept = fit_lines(heads, max(budget - count("\n" + notice), 0), count)
    return "\n".join([*kept, f"... {len(heads) - len(kept)} more members"])


def _share_out(
    members: Sequence[Member], lod: int, budget: int, count: Count, *, spent: int
) -> list[list[tuple[int, str]]]:
    """For each member the numbered lines it may show: the heaviest members choose first."""
    chosen: list[list[tuple[int, str]]] = [[] for _ in members]
    left = budget - spent
    weight_left = sum(member.weight for member in members)
    # Ties by place: what a share leaves goes on to the next, in each replay alike.
    order = sorted(range(len(members)), key=lambda i: (-members[i].weight, i))
    for index in order:
        member = members[index]
        share = left * member.weight // weight_left if weight_left else left
        weight_left -= member.weight
        for number, line in candidates(member.state, lod):
            cost = count("  " + line) + 1
            if budget != ALL_TOKENS and cost > share:
                break
            share -= cost
            left -= cost
            chosen[index].append((number, line))
    return chosen


def _assemble(
    heads: Sequence[str], chosen: list[list[tuple[int, str]]], budget: int, count: Count
) -> str:
    """The text; lines are dropped from the end should the whole cost more than its lines did one by
    one.
    """
    while True:
        lines: list[str] = []
        for head, part in zip(heads, chosen, strict=True):
            lines.append(head)
            lines.extend("  " + line for _, line in sorted(part))
        text = "\n".join(lines)
        last = next((part for part in reversed(chosen) if part), None)
        if budget == ALL_TOKENS or last is None or count(text) <= budget:
            return text
        last.pop()


def candidates(state: AnyNode, lod: int) -> list[tuple[int, str]]:
    """The lines of a member that may stand in the summary, most telling first, each with its place
    in the text.
    """
    numbered = list(enumerate(state.rendering.text.splitlines()))
    if lod == 0:
        return numbered
    numbered = [(number, _clipped(line)) for number, line in numbered if line.strip()]
    if isinstance(state, GroupState | NoteState) or state.rendering.lod == 1:
        return numbered
    structure = [item for item in numbered if _STRUCTURE.match(item[1])]
    if lod == 1:
        return structure or numbered[:FIRST_LINES]
    first = numbered[:FIRST_LINES]
    return first + [item for item in structure if item not in first]


def _clipped(line: str) -> str:
    line = line.rstrip()
    return line if len(line) <= LINE_LIMIT else line[: LINE_LIMIT - 1] + "…"
