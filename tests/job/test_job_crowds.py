"""A job with thousands of nodes of one kind in a small context: none ends for their number, and
what gives way is told of.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from plain_loop import PlainLoop, statements

from runtime.base.spec.models import Budget, Sections
from runtime.job.made import MOST_PLACES
from runtime.job.stops import JobFailed
from runtime.projection.segments import SegmentKind

MANY = 2_000
FEWER = 600
"""Of nodes that are dear to make: views are read, groups summed up."""

CONTEXT = 6_000
LISTS = "held = [[] for n in range(10)]"
BUDGET = Budget(turns=50, tokens=10**12, usd=1e9, wall_seconds=1e9)


def crowd(workspace: Path, *sources: str, **options: Any) -> PlainLoop:
    """A job that carries out ``sources`` and then looks at what is left."""
    chosen = {"context_tokens": CONTEXT, "budget": BUDGET} | options
    loop = PlainLoop(workspace, statements(*sources, "x = 1", "x = 2"), options=chosen).run()
    assert loop.stop is not None and loop.stop.reason == "finished"
    assert max(turn.tokens for turn in loop.turns) <= loop.job.spec.context_tokens
    return loop


def in_pieces(source: str, many: int = MANY, pieces: int = 4) -> list[str]:
    """``source`` for all ``n`` below ``many``, in several statements."""
    size = many // pieces
    return [f"for n in range({at}, {at + size}):\n    {source}" for at in range(0, many, size)]


def shown(loop: PlainLoop, kind: SegmentKind) -> list[str]:
    """The texts of this kind in the last prompt."""
    return [segment.text for segment in loop.layouts[-1] if segment.kind is kind]


@pytest.mark.parametrize(
    ("kind", "before", "source"),
    [
        (SegmentKind.NOTE, "x = 0", "note(f'fact {n} is that the number is {n}')"),
        (
            SegmentKind.NOTE,
            LISTS,
            "held[n // 200].append(note(f'fact {n} is that the number is {n}'))",
        ),
        (SegmentKind.VIEW, "x = 0", "pin(view('src/foo.py', pos=n % 90, tokens=40))"),
        (
            SegmentKind.VIEW,
            LISTS,
            "held[n // 200].append(view('src/foo.py', pos=n % 90, tokens=40))",
        ),
        (
            SegmentKind.GROUP,
            f"v = view('src/foo.py', tokens=40)\n{LISTS}",
            "held[n // 200].append(group(v, tokens=60))",
        ),
        (SegmentKind.GROUP, "v = view('src/foo.py', tokens=40)", "pin(group(v, tokens=60))"),
    ],
    ids=["notes", "held notes", "pinned views", "held views", "held groups", "pinned groups"],
)
@pytest.mark.slow
def test_no_job_ends_for_the_number_of_its_nodes(
    workspace: Path, kind: SegmentKind, before: str, source: str
) -> None:
    """2,000 notes, 600 of the others: every prompt fits, and the rest is counted in a line."""
    many = MANY if kind is SegmentKind.NOTE else FEWER
    loop = crowd(workspace, before, *in_pieces(source, many))
    assert len(loop.job.graph.obj_ids) >= many
    assert len(shown(loop, kind)) < many
    told = "\n".join(segment.text for segment in loop.layouts[-1] if segment.tail)
    assert "more handles left out for room; ls() lists all" in told
    assert "[left out for room: " in told


def test_the_newest_notes_stay_and_one_that_was_left_out_comes_back(workspace: Path) -> None:
    """The oldest give way first; a call on one shows it again."""
    made = in_pieces("ns.append(note(f'fact {n} is that the number is {n}'))", 200)
    loop = crowd(workspace, "ns = []", *made, "ns[0].Append('told again')")
    notes = shown(loop, SegmentKind.NOTE)
    assert any("fact 199 is" in text for text in notes) and any(
        "told again" in text for text in notes
    )
    assert not any("fact 1 is" in text for text in notes)


@pytest.mark.slow
def test_what_is_pinned_outlasts_what_is_not(workspace: Path) -> None:
    """One pinned view among 200 that are merely held stays in every prompt."""
    made = in_pieces("vs.append(view('src/foo.py', pos=n % 90, tokens=40))", 200)
    loop = crowd(workspace, "kept = view('src/bar.py', tokens=60)\npin(kept)\nvs = []", *made)
    for layout in loop.layouts[1:]:
        assert any(s.kind is SegmentKind.VIEW and s.text.startswith("[kept: ") for s in layout)


@pytest.mark.slow
def test_a_group_of_hundreds_names_a_few_of_its_members(workspace: Path) -> None:
    """In its header, in the feed, and in the mark of a member."""
    made = in_pieces("vs.append(view('src/foo.py', pos=n % 90, tokens=10))", 400)
    loop = crowd(workspace, "vs = []", *made, "g = group(*vs, tokens=300)")
    [text] = shown(loop, SegmentKind.GROUP)
    assert (
        text.splitlines()[0].startswith("[g: group of vs[0], vs[1], ") and " and 380 more, " in text
    )
    assert "more members" in text


def test_a_section_of_notes_that_is_full_lets_the_oldest_go(workspace: Path) -> None:
    """Although the prompt has room for all."""
    sections = Sections(notes=200)
    loop = crowd(
        workspace,
        "ns = [note(f'fact {n} is short') for n in range(60)]",
        sections=sections,
        context_tokens=20_000,
    )
    notes = shown(loop, SegmentKind.NOTE)
    assert 1 < len(notes) < 30 and "fact 59" in notes[-1]


def test_what_can_never_be_left_out_is_named_where_it_is_too_large(workspace: Path) -> None:
    """The error says which part of the prompt it is, and how large."""
    with pytest.raises(
        JobFailed,
        match=r"left out \(goal 5,\d\d\d, contract \d,\d\d\d, .*; context_tokens allows 4,000",
    ):
        crowd(workspace, "x = 0", goal="word " * 5_000, context_tokens=4_000)


def test_a_loop_that_reuses_a_name_leaves_one_line(workspace: Path) -> None:
    """Not a mark for each view; the one that the name holds stands in its place."""
    loop = crowd(
        workspace,
        "for n in range(30):\n    v = view('src/foo.py', pos=n, tokens=30)",
        context_tokens=20_000,
    )
    [told] = [s.text for s in loop.layouts[-1] if "made here" in s.text]
    assert told == "[29 views made here that no variable holds; of a list, 200 items count]"
    assert not any("no variable holds it" in s.text for s in loop.layouts[-1])
    assert [text.split(":")[0] for text in shown(loop, SegmentKind.VIEW)] == ["[v"]


@pytest.mark.slow
def test_a_statement_that_makes_many_views_has_a_bounded_number_of_places(workspace: Path) -> None:
    """The newest have theirs; the others stand in the tail, all of them as long as there is
    room.
    """
    numbers = {"a": 200, "b": 200, "c": 20}
    made = (
        f"{name} = [view('src/foo.py', pos=n % 90, tokens=20) for n in range({n})]"
        for name, n in numbers.items()
    )
    loop = crowd(workspace, "\n".join(made), context_tokens=60_000)
    assert len(shown(loop, SegmentKind.VIEW)) == 420
    places = [s for s in loop.layouts[-1] if s.kind is SegmentKind.VIEW and not s.tail]
    assert len(places) == MOST_PLACES and places[-1].text.startswith("[c[19]: ")
    assert any(s.text == "[20 views made here, and shown further down]" for s in loop.layouts[-1])
