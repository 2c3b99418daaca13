"""Tracebacks of the lowered text, told as of the statement that the model wrote."""

from __future__ import annotations

import re

from runtime.interpreter import supplied
from runtime.interpreter.lowering import CALLING, Lowered

_FRAME = re.compile(r'  File "<python-input-\d+>", line (\d+)(, in .*)?$')


def told(trace: str, lowered: Lowered, source: str) -> str:
    """``trace`` without the frames of supplied pieces, and with the statement's own lines and line
    numbers.
    """
    own, fed = source.split("\n"), lowered.source.split("\n")
    lines = trace.split("\n")
    kept: list[str] = []
    at = 0
    while at < len(lines):
        frame = _FRAME.match(lines[at])
        end = at + 1
        while frame is not None and end < len(lines) and lines[end].startswith("    "):
            end += 1
        if frame is None:
            kept.append(lines[at])
        else:
            kept += _frame(
                int(frame[1]), frame[2] or "", lines[at + 1 : end], lowered.lines, own, fed
            )
        at = end
    return "\n".join(kept)


def _frame(
    line: int,
    where: str,
    shown: list[str],
    origins: tuple[int, ...],
    own: list[str],
    fed: list[str],
) -> list[str]:
    text = shown[0].strip() if shown else ""
    if text.startswith(f"def {CALLING}"):
        return []
    here = line <= len(fed) and fed[line - 1].strip() == text
    # A statement may have a line that a piece has too: then it is told as the statement's.
    if text in supplied.own_lines() and not here:
        return []
    if here and line <= len(origins):
        line = origins[line - 1]
        original = own[line - 1].strip() if line <= len(own) else ""
        # The marks below a line are of its columns, which are others where it was edited.
        shown = shown if original == text else [f"    {original}"]
    elif supplied.PREFIX in text:
        shown = []
    return [f'  File "<statement>", line {line}{where}', *shown]
