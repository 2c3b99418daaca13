"""A note outlives every condensation, without a variable, and stands in every prompt."""

from __future__ import annotations

from pathlib import Path

from plain_loop import PlainLoop, statements

from runtime.base.fences import fenced
from runtime.history.events import Condensation
from runtime.projection.segments import SegmentKind


def text(size: int) -> str:
    """A tool with a long answer."""
    return "word " * size


def test_a_note_survives_condensations(workspace: Path) -> None:
    """Though the statement that wrote it is forgotten, and its variable is gone; until it is let go
    of.
    """
    sources = ["n = note('first the parser, then the printer')\nkeep = [n]\nn = None"]
    sources += [f"print(text(200))\nx = {number}" for number in range(14)]
    sources += [
        "keep[0].SetText('now the printer')",
        "pin(keep[0], reason=None)\nkeep = None",
        "x = 0",
    ]
    loop = (
        PlainLoop(workspace, statements(*sources), tools=[text], options={"context_tokens": 3400})
        .run()
        .replayed()
    )
    assert any(isinstance(event, Condensation) for event in loop.job.log)
    notes = [[s.text for s in layout if s.kind is SegmentKind.NOTE] for layout in loop.layouts]
    name = "keep[0]"
    assert notes[0] == []
    assert (
        notes[1:16]
        == [[f"[{name}: note, 7 tokens]\n" + fenced("first the parser, then the printer")]] * 15
    )
    assert notes[16] == [f"[{name}: note, 3 tokens]\n" + fenced("now the printer")]
    assert notes[17:] == [[], []]
    forgotten = [s.origin for s in loop.layouts[15] if s.kind is SegmentKind.REPLY]
    assert "statement:1" not in forgotten
