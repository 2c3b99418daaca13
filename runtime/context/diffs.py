"""Level of detail 3: the unified diff between two renderings, with the source's own line
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from runtime.context.sources import ALL_TOKENS
from runtime.context.states import RenderedView

CONTEXT_LINES = 2


@dataclass(frozen=True)
class LineDiff:
    """A unified diff's lines (empty when nothing differs) and how many lines came and went."""

    lines: tuple[str, ...]
    added: int
    removed: int


EXACT_LINES = 250_000
"""Pairs of lines up to which the shortest diff is looked for.

Beyond, lines that are everywhere are no anchors: with them the search takes seconds for a file of
many equal lines.
"""


def line_diff(before: RenderedView, after: RenderedView) -> LineDiff:
    """The unified diff from ``before`` to ``after``; hunk headers count source lines from 0, as
    ``pos`` does.
    """
    return _line_diff(before.text, before.first_line, after.text, after.first_line)


@lru_cache(maxsize=64)
def _line_diff(before: str, before_first: int, after: str, after_first: int) -> LineDiff:
    """One change is described several times: as an event, in the feed and in its detail."""
    old, new = before.splitlines(), after.splitlines()
    if old == new:
        return LineDiff((), 0, 0)
    # What is equal at both ends is cut first: the matcher's time grows with the square of the
    # lines.
    # Less the lines that a hunk shows around itself.
    head = max(_common(old, new) - CONTEXT_LINES, 0)
    # A line that both ends could claim is cut only once.
    rest = min(len(old), len(new)) - head
    tail = max(min(_common(old[::-1], new[::-1]), rest) - CONTEXT_LINES, 0)
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    lines: list[str] = []
    added = removed = 0
    matcher = SequenceMatcher(None, old, new, autojunk=len(old) * len(new) > EXACT_LINES)
    for hunk in matcher.get_grouped_opcodes(CONTEXT_LINES):
        lines.append(_hunk_header(hunk, before_first + head, after_first + head))
        for tag, i1, i2, j1, j2 in hunk:
            if tag == "equal":
                lines.extend(" " + line for line in old[i1:i2])
                continue
            lines.extend("-" + line for line in old[i1:i2])
            lines.extend("+" + line for line in new[j1:j2])
            removed += i2 - i1
            added += j2 - j1
    return LineDiff(tuple(lines), added, removed)


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """How many items the two begin with in common."""
    shorter = min(len(old), len(new))
    return next((i for i in range(shorter) if old[i] != new[i]), shorter)


def _hunk_header(
    hunk: Sequence[tuple[str, int, int, int, int]], old_from: int, new_from: int
) -> str:
    _, i1, _, j1, _ = hunk[0]
    _, _, i2, _, j2 = hunk[-1]
    return f"@@ -{old_from + i1},{i2 - i1} +{new_from + j1},{j2 - j1} @@"


def fit_lines(lines: Sequence[str], budget: int, count: Callable[[str], int]) -> list[str]:
    """The longest run of ``lines`` from the first on whose text has at most ``budget`` tokens
    (``ALL_TOKENS``: all).
    """
    if budget == ALL_TOKENS or count("\n".join(lines)) <= budget:
        return list(lines)
    low, high = 0, len(lines) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if count("\n".join(lines[:middle])) <= budget:
            low = middle
        else:
            high = middle - 1
    return list(lines[:low])


def diff_text(
    before: RenderedView, after: RenderedView, budget: int, count: Callable[[str], int]
) -> str:
    """``line_diff`` as text within ``budget`` tokens; a last line tells what was left out."""
    lines = line_diff(before, after).lines
    if not lines:
        return "(no change since it was last shown)"
    # Without room for the notice first: where all fits, there is none.
    kept = fit_lines(lines, budget, count)
    if len(kept) == len(lines):
        return "\n".join(lines)
    notice = f"... {len(lines) - len(kept)} more diff lines"
    kept = fit_lines(lines, max(budget - count("\n" + notice), 0), count)
    return "\n".join([*kept, f"... {len(lines) - len(kept)} more diff lines"])
