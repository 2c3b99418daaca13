"""Budgets of a prompt's parts: each part gives way by itself, and says so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plain_loop import PlainLoop, statements

from runtime.base.fences import unfenced
from runtime.base.spec.models import Sections
from runtime.history.events import Condensation
from runtime.projection.segments import Segment, SegmentKind


def text(size: int) -> str:
    """A tool with a long answer."""
    return "word " * size


def loop_of(workspace: Path, sections: Sections, *sources: str, **more: Any) -> PlainLoop:
    """A job with room enough, but for its sections."""
    options = {"context_tokens": 50_000, "sections": sections}
    return (
        PlainLoop(workspace, statements(*sources), tools=[text], options=options, **more)
        .run()
        .replayed()
    )


def sizes(layouts: Sequence[Sequence[Segment]], kind: SegmentKind) -> list[int]:
    """What the segments of a kind have in each prompt, with the framing of messages."""
    return [sum(s.tokens + 4 for s in layout if s.kind is kind) for layout in layouts]


def test_views_beyond_their_section_leave_marks_the_oldest_first(workspace: Path) -> None:
    """What the last statement made stays, and so does what is pinned, in fewer tokens."""
    sources = [f"v{n} = view('src/foo.py', tokens=300)" for n in range(6)]
    loop = loop_of(workspace, Sections(views=1_000), *sources)
    assert max(sizes(loop.layouts, SegmentKind.VIEW)) <= 1_000
    marks = [s.text for s in loop.layouts[-1] if s.kind is SegmentKind.MARK]
    assert (
        marks[0]
        == "[v0: view of src/foo.py; left out for room: v0.Refresh() brings it back, show(v0)"
        " prints it once]"
    )
    views = [s.text.partition(":")[0] for s in loop.layouts[-1] if s.kind is SegmentKind.VIEW]
    assert views[-1] == "[v5" and len(views) + len(marks) == 6
    pins = "\n".join(f"p{n} = view('src/foo.py', tokens=600)\npin(p{n})" for n in range(3))
    loop = loop_of(workspace, Sections(views=700), pins, "x = 1")
    assert 300 < sizes(loop.layouts, SegmentKind.VIEW)[-1] <= 700
    shown = [s.text for s in loop.layouts[-1] if s.kind is SegmentKind.VIEW]
    assert len(shown) == 3 and all("more lines" in view for view in shown)


def test_groups_beyond_their_section_are_shown_smaller_and_then_named(workspace: Path) -> None:
    """The largest first; one that is left out is in a line of its own."""
    made = "a = view('src/foo.py', tokens=900)\n" + "\n".join(
        f"g{n} = group(a, tokens=400)" for n in range(4)
    )
    loop = loop_of(workspace, Sections(groups=600), made, "x = 1")
    assert 200 < sizes(loop.layouts, SegmentKind.GROUP)[-1] <= 600
    assert len([s for s in loop.layouts[-1] if s.kind is SegmentKind.GROUP]) == 4
    loop = loop_of(workspace, Sections(groups=64), made, "x = 1", "g3.Refresh()", "y = 1")
    assert sizes(loop.layouts, SegmentKind.GROUP)[-1] <= 64
    named = [s.text for s in loop.layouts[-1] if s.kind is SegmentKind.MARK and s.tail]
    assert named == [
        "[left out for room: g0, g1, g2, g3; Refresh() brings one back, show() prints it once]"
    ]


def test_notes_are_shown_smaller_and_never_left_out(workspace: Path) -> None:
    """A line says how much of it is missing."""
    lines = "\\n".join(f"point {n} of the plan" for n in range(60))
    loop = loop_of(workspace, Sections(notes=200), f"n = note('{lines}', tokens=900)", "x = 1")
    [note] = [s for s in loop.layouts[-1] if s.kind is SegmentKind.NOTE]
    assert note.tokens <= 200 and unfenced(note.text.partition("\n")[2]).endswith(" more lines")


def test_what_was_said_is_condensed_beyond_its_section(workspace: Path) -> None:
    """Though the whole prompt is far from its bound; the views of what was forgotten are in the
    tail.
    """
    sources = ["v = view('src/foo.py', tokens=2000)", *["print(text(200))"] * 14]
    loop = loop_of(workspace, Sections(history=1_500), *sources)
    assert [e.turn for e in loop.job.log if isinstance(e, Condensation)]
    kinds = [s.kind for s in loop.layouts[-1]]
    assert kinds[:3] == [SegmentKind.CONTRACT, SegmentKind.GOAL, SegmentKind.SUMMARY]
    assert SegmentKind.VIEW in kinds
    said = [SegmentKind.SUMMARY, SegmentKind.REPLY, SegmentKind.RESULT]
    assert all(sum(sum(sizes([layout], kind)) for kind in said) <= 1_800 for layout in loop.layouts)


def test_the_feed_and_the_handles_keep_to_theirs(workspace: Path) -> None:
    """What is left out is counted."""
    made = "\n".join(f"v{n} = view('notes.md', tokens=60, freq='Sync')" for n in range(30))

    def between(turn: int) -> None:
        (workspace / "notes.md").write_text(f"# Plan {turn}\n\nsteps\n")

    loop = loop_of(
        workspace, Sections(feed=100, handles=120), made, "x = 1", "x = 2", between=between
    )
    [feed] = [s for s in loop.layouts[-1] if s.kind is SegmentKind.DELTA]
    assert feed.tokens <= 100 + 10 and feed.text.splitlines()[-1].endswith(" more changes")
    [handles] = [s for s in loop.layouts[-1] if s.kind is SegmentKind.HANDLES]
    lines = handles.text.splitlines()
    assert sum(len(line.split(" | ")) > 1 for line in lines) >= 3
    assert lines[-1] == f"... {30 - len(lines) + 2} more handles left out for room; ls() lists all"
