"""Level of detail 3: the unified diff between two renderings, with the source's own line numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from runtime.context.sources import ALL_TOKENS
from runtime.context.states import RenderedView

CONTEXT_LINES = 2


@dataclass(frozen=True)
class LineDiff:
    """A unified diff's lines (empty when nothing differs) and how many lines came and went."""

    lines: tuple[str, ...]
    added: int
    removed: int


def line_diff(before: RenderedView, after: RenderedView) -> LineDiff:
    """The unified diff from ``before`` to ``after``; hunk headers count source lines from 0, as ``pos`` does."""
    old, new = before.text.splitlines(), after.text.splitlines()
    if old == new:
        return LineDiff((), 0, 0)
    lines: list[str] = []
    added = removed = 0
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for hunk in matcher.get_grouped_opcodes(CONTEXT_LINES):
        lines.append(_hunk_header(hunk, before.first_line, after.first_line))
        for tag, i1, i2, j1, j2 in hunk:
            if tag == "equal":
                lines.extend(" " + line for line in old[i1:i2])
                continue
            lines.extend("-" + line for line in old[i1:i2])
            lines.extend("+" + line for line in new[j1:j2])
            removed += i2 - i1
            added += j2 - j1
    return LineDiff(tuple(lines), added, removed)


def _hunk_header(hunk: Sequence[tuple[str, int, int, int, int]], old_from: int, new_from: int) -> str:
    _, i1, _, j1, _ = hunk[0]
    _, _, i2, _, j2 = hunk[-1]
    return f"@@ -{old_from + i1},{i2 - i1} +{new_from + j1},{j2 - j1} @@"


def fit_lines(lines: Sequence[str], budget: int, count: Callable[[str], int]) -> list[str]:
    """The longest run of ``lines`` from the first on whose text has at most ``budget`` tokens (``ALL_TOKENS``: all)."""
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


def diff_text(before: RenderedView, after: RenderedView, budget: int, count: Callable[[str], int]) -> str:
    """``line_diff`` as text within ``budget`` tokens; a last line tells what was left out."""
    lines = line_diff(before, after).lines
    if not lines:
        return "(no change since it was last shown)"
    kept = fit_lines(lines, budget, count)
    if len(kept) == len(lines):
        return "\n".join(lines)
    notice = f"... {len(lines) - len(kept)} more diff lines"
    kept = fit_lines(lines, max(budget - count("\n" + notice), 0), count)
    return "\n".join([*kept, f"... {len(lines) - len(kept)} more diff lines"])
