"""Views that change: rewritten where they stand, told of further down, or whichever costs less; and
always with a reason.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from plain_loop import PlainLoop, statements

from runtime.base.fences import fenced
from runtime.base.spec.models import ProjectionPolicy
from runtime.job import checkpoint
from runtime.projection.prefix import prefix_of
from runtime.projection.prices import Prices
from runtime.projection.segments import Segment, SegmentKind

LINES = "".join(f"line {n} of the file, which nobody changes\n" for n in range(40))


def long(size: int) -> str:
    """A tool with a long answer."""
    return "word " * size


def loop_of(
    workspace: Path, policy: ProjectionPolicy, *sources: str, edits: dict[int, str], **options: Any
) -> PlainLoop:
    """A job over ``a.txt``, which is edited before some turns."""
    (workspace / "a.txt").write_text(LINES)

    def between(turn: int) -> None:
        if turn in edits:
            (workspace / "a.txt").write_text(edits[turn])
        elif turn == 1:
            (workspace / "a.txt").write_text(LINES)

    options = {"projection": policy, "context_tokens": 50_000, **options}
    return PlainLoop(
        workspace, statements(*sources), tools=[long], options=options, between=between
    )


def view_of(layout: Sequence[Segment]) -> str:
    """What stands at the view's place."""
    return next(
        segment.text
        for segment in layout
        if segment.origin.startswith("node:") and not segment.tail
    )


def told(layout: Sequence[Segment]) -> list[str]:
    """The messages that tell of a change."""
    heads = ("[changed since", "[as it is now", "[now, the text")
    return [s.text for s in layout if s.kind is SegmentKind.RESULT and s.text.startswith(heads)]


WATCH = "a = view('a.txt', freq='Sync', tokens=2000)"
WORK = "print(long(1500))"
EDITS = {n: LINES.replace("line 7", f"line 7 ({n})") for n in (6, 9)}


def test_inline_shows_a_change_where_the_view_stands(workspace: Path) -> None:
    """At once, and what stands behind it is paid for anew."""
    loop = (
        loop_of(workspace, ProjectionPolicy.INLINE, WATCH, *[WORK] * 10, edits=EDITS)
        .run()
        .replayed()
    )
    assert "line 7 (6)" in view_of(loop.layouts[5]) and "line 7 (9)" in view_of(loop.layouts[8])
    assert not any(told(layout) for layout in loop.layouts)
    shares = [prefix_of(a, b).share for a, b in zip(loop.layouts, loop.layouts[1:], strict=False)]
    assert shares[4] < 0.3 and shares[7] < 0.3 and shares[6] > 0.8


def test_append_leaves_the_prefix_as_it_is_and_tells_each_change_once(workspace: Path) -> None:
    """Each in a message of its own, as a diff, which stays; the tail names the change and does not
    repeat it.
    """
    loop = (
        loop_of(workspace, ProjectionPolicy.APPEND, WATCH, *[WORK] * 10, edits=EDITS)
        .run()
        .replayed()
    )
    for before, after in zip(loop.layouts, loop.layouts[1:], strict=False):
        assert prefix_of(before, after).broken is None
    assert "line 7 of" in view_of(loop.layouts[-1])
    last = told(loop.layouts[-1])
    assert (
        len(last) == 2 and "-line 7 of the file" in last[0] and "+line 7 (9) of the file" in last[1]
    )
    assert "line 8" in last[0] and "line 20" not in last[0]
    [feed] = [segment.text for segment in loop.layouts[5] if segment.kind is SegmentKind.DELTA]
    assert "its source changed, +1 -1 lines" in feed and "-line 7" not in feed


def test_a_pinned_view_is_told_in_full(workspace: Path) -> None:
    """What is pinned is to be seen as it is, not as it was with what became of it."""
    sources = [f"{WATCH}\npin(a, reason='it matters')", *[WORK] * 7]
    loop = loop_of(workspace, ProjectionPolicy.APPEND, *sources, edits=EDITS).run().replayed()
    change, *_ = told(loop.layouts[-1])
    head, _, text = change.partition("\n")
    assert head == "[as it is now, in place of what is shown above]"
    assert text.partition("\n")[2] == fenced(EDITS[6].rstrip("\n"))


def test_a_change_that_is_taken_back_is_told_too(workspace: Path) -> None:
    """What stands at the place is true again then, but the message behind it is not."""
    edits = {6: EDITS[6], 9: LINES}
    loop = (
        loop_of(workspace, ProjectionPolicy.APPEND, WATCH, *[WORK] * 10, edits=edits)
        .run()
        .replayed()
    )
    there, back = told(loop.layouts[-1])
    assert "+line 7 (6) of the file" in there
    assert "-line 7 (6) of the file" in back and "+line 7 of the file" in back


def test_auto_rewrites_what_little_stands_behind_and_tells_what_much_does(workspace: Path) -> None:
    """A change right behind the place is shown there; one with thousands of tokens behind it is
    told.
    """
    early = {3: LINES.replace("line 7", "line seven")}
    loop = (
        loop_of(workspace, ProjectionPolicy.AUTO, WATCH, *["x = 1"] * 3, edits=early)
        .run()
        .replayed()
    )
    assert "line seven" in view_of(loop.layouts[2]) or told(loop.layouts[2])
    loop = (
        loop_of(workspace, ProjectionPolicy.AUTO, WATCH, *[WORK] * 10, edits=EDITS).run().replayed()
    )
    assert "line 7 of" in view_of(loop.layouts[8]) and len(told(loop.layouts[8])) == 2


def test_a_model_without_a_cache_is_always_shown_the_places_as_they_are(workspace: Path) -> None:
    """Where every token costs the same a rewrite costs nothing, and the shorter prompt is the
    cheaper.
    """
    loop = loop_of(workspace, ProjectionPolicy.AUTO, WATCH, *[WORK] * 10, edits=EDITS)
    loop.job.places.prices = Prices(usd=1e-6, read=1.0, write=1.0)
    loop.run()
    assert "line 7 (9)" in view_of(loop.layouts[-1]) and not told(loop.layouts[-1])


def test_auto_collapses_a_large_view_once_that_pays_and_says_what_for(workspace: Path) -> None:
    """One rewrite for all that stands behind; the reason names the statement that caused it."""
    (workspace / "big.txt").write_text("a line with some words in it\n" * 1500)
    sources = [
        "b = view('big.txt', tokens=All)",
        WATCH,
        "print(long(300))",
        "b.SetTokens(50)",
        *[WORK] * 12,
    ]
    loop = loop_of(workspace, ProjectionPolicy.AUTO, *sources, edits={})
    reasons: list[str] = []
    while loop.job.stop(loop.now) is None:
        loop.turn()
        reasons.append("; ".join(loop.job.places.reasons))
    sizes = [sum(segment.tokens for segment in layout) for layout in loop.layouts]
    assert sizes[3] > 10_000 > sizes[4]
    assert reasons[4] == "turn 4: b.SetTokens" and [r for r in reasons if r] == [
        "turn 4: b.SetTokens"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("policy", list(ProjectionPolicy))
def test_no_prefix_moves_without_a_reason_and_room_is_one(
    workspace: Path, policy: ProjectionPolicy
) -> None:
    """Under every policy, with condensations and views that give way."""
    edits = {n: LINES.replace(f"line {n}", f"edit {n}") for n in range(3, 40, 2)}
    sources = [
        WATCH,
        "b = view('a.txt', pos='20', tokens=400).Run()",
        *["print(long(300))", "b.Scroll(1)"] * 18,
    ]
    loop = loop_of(workspace, policy, *sources, edits=edits, context_tokens=5_000)
    broken: list[str] = []
    while loop.job.stop(loop.now) is None:
        loop.turn()
        if len(loop.layouts) > 1 and prefix_of(*loop.layouts[-2:]).broken is not None:
            assert loop.job.places.reasons, (
                f"turn {loop.job.turn}: the prefix moved, and nobody says why"
            )
            broken += loop.job.places.reasons
    assert "condensed" in broken
    loop.stop = loop.job.stop(loop.now)
    loop.replayed()


def test_a_checkpoint_keeps_what_stands_where(workspace: Path) -> None:
    """The job goes on with the same prompts as the one that was not stopped."""
    sources = [WATCH, *[WORK] * 8]
    whole = loop_of(
        workspace, ProjectionPolicy.APPEND, *sources, edits={4: EDITS[6], 7: EDITS[9]}
    ).run()
    loop = loop_of(workspace, ProjectionPolicy.APPEND, *sources, edits={4: EDITS[6], 7: EDITS[9]})
    for turn in range(1, 10):
        loop.turn()
        state = json.loads(json.dumps(checkpoint.dump(loop.job)))
        loop.job = checkpoint.load(loop.job.spec, state, count=loop.job.desk.count)
        assert [s.digest for s in loop.layouts[-1]] == [s.digest for s in whole.layouts[turn - 1]]


CAUSES = {
    "a call": ("a.SetTokens(100)", "turn 4: a.SetTokens"),
    "a call that only asks": (
        "a.SetTokens(100)\nd = a.GetDigest()\na.Pause()",
        "turn 4: a.SetTokens",
    ),
    "a group that shows it": ("a.SetTokens(100)\ng = group(a)", "a: summarised by g"),
    "a variable that is gone": ("a = None", "view-1: no variable holds it"),
    "another variable": ("b = a\na = None", "b: another variable holds it, before it was a"),
    "its source": ("x = 1", "turn 5: a, its source changed, +1 -1 lines of those shown"),
}


@pytest.mark.parametrize("statement,cause", CAUSES.values(), ids=CAUSES)
def test_a_rewrite_names_what_made_it(workspace: Path, statement: str, cause: str) -> None:
    """Not what was last asked of the view: also a group, a variable and its source put another text
    there.
    """
    edits = {5: EDITS[6]} if statement == "x = 1" else {}
    loop = loop_of(
        workspace,
        ProjectionPolicy.INLINE,
        WATCH,
        *["print(1)"] * 2,
        statement,
        "y = 1",
        edits=edits,
    )
    found: list[list[str]] = []
    while loop.job.stop(loop.now) is None:
        loop.turn()
        found.append(list(loop.job.places.reasons))
    assert found[:4] == [[]] * 4
    assert found[4] == [cause]


def test_a_cause_is_told_once_and_tells_what_waited(workspace: Path) -> None:
    """A change that a message told of is rewritten when another is: it says so, and does not come
    up again.
    """
    sources = [WATCH, "print(1)", "a.SetTokens(100)", "print(1)", "print(1)", "a = None", "x = 1"]
    loop = loop_of(workspace, ProjectionPolicy.APPEND, *sources, edits={})
    found: dict[int, list[str]] = {}
    while loop.job.stop(loop.now) is None:
        loop.turn()
        if loop.job.turn == 5:
            loop.job.places.policy = ProjectionPolicy.INLINE
        if loop.job.places.reasons:
            found[loop.job.turn] = list(loop.job.places.reasons)
    assert found == {
        6: ["turn 3: a.SetTokens, told further down until now"],
        7: ["view-1: no variable holds it"],
    }
