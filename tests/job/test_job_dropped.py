"""Nothing is dropped for room without a line that says so: users' messages and errors least of
all.
"""

from __future__ import annotations

import json
from pathlib import Path

from plain_loop import PlainLoop, statements

from runtime.base.spec.models import CondenserSpec
from runtime.job import checkpoint
from runtime.projection.segments import SegmentKind


def dropped(loop: PlainLoop) -> str:
    """What the newest prompt says of what was dropped."""
    lines = [s.text for s in loop.layouts[-1] if s.kind is SegmentKind.MARK and s.tail]
    return lines[0] if lines else ""


def test_a_rolling_window_says_what_it_dropped(workspace: Path) -> None:
    """Events, the user's messages and errors are counted, over all condensations and across a
    checkpoint.
    """
    condenser = (CondenserSpec(kind="rolling", max_size=12),)
    sources = ["1 / 0", *[f"print({n})" for n in range(16)]]
    options = {"condenser": condenser}
    loop = PlainLoop(workspace, statements(*sources), options=options, messages={2: ("be quick",)})
    seen = []
    for _ in range(12):
        loop.turn()
        seen.append(dropped(loop))
    assert seen[2] == ""
    assert seen[-1].startswith("[forgotten for room, with nothing in their place: ")
    assert seen[-1].endswith(" events, among them 1 message of the user and 1 error]")
    state = json.loads(json.dumps(checkpoint.dump(loop.job)))
    again = checkpoint.load(loop.job.spec, state, count=loop.job.desk.count)
    assert again.condensing.dropped == loop.job.condensing.dropped


def test_what_a_summary_stands_for_needs_no_line(workspace: Path) -> None:
    """An extract stands where the events stood, and says itself what it is."""
    condenser = (CondenserSpec(kind="extract", max_size=12),)
    loop = PlainLoop(
        workspace, statements(*[f"print({n})" for n in range(12)]), options={"condenser": condenser}
    ).run()
    assert dropped(loop) == ""
    assert any(segment.kind is SegmentKind.SUMMARY for segment in loop.layouts[-1])
