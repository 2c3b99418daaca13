"""What ``diff --text`` prints of a changed text."""

from __future__ import annotations

from runtime.archive.inspect import Change, ChangeKind
from runtime.cli.diff import _text_lines
from runtime.projection.segments import Role, Segment, SegmentKind


def test_a_line_that_looks_like_a_diffs_own_is_told() -> None:
    """A text may have options of a command in it, or another diff."""

    def said(text: str) -> Segment:
        return Segment(
            kind=SegmentKind.VIEW, origin="node:view-1", role=Role.USER, text=text, tokens=1
        )

    change = Change(ChangeKind.CHANGED, said("a\n-- old\nz"), said("a\n++ new\nz"), 1, 1)
    assert [line for line in _text_lines(change) if not line.startswith("@@")] == [
        *(" a", "--- old", "+++ new", " z")
    ]
