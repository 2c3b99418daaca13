"""Level of detail 3: what changed since it was last shown."""

from __future__ import annotations

import pytest
from context_memory import Job, numbered, words

from runtime.context.diffs import diff_text, line_diff
from runtime.context.outcomes import NodeRef
from runtime.context.sources import ALL_TOKENS
from runtime.context.states import RenderedView


@pytest.fixture
def job() -> Job:
    return Job({"a.txt": numbered(8)})


def change(job: Job, old: str, new: str) -> None:
    job.files["a.txt"] = job.files["a.txt"].replace(old, new)


def test_diff_counts_source_lines_from_zero() -> None:
    """Hunk headers carry the lines of the source, not of the excerpt, counted as ``pos`` counts
    them.
    """
    before = RenderedView(text=numbered(6, start=100), first_line=100)
    after = RenderedView(text=numbered(6, start=100).replace("line103", "new"), first_line=100)
    diff = line_diff(before, after)
    assert diff.lines == (
        "@@ -101,5 +101,5 @@",
        " line101",
        " line102",
        "-line103",
        "+new",
        " line104",
        " line105",
    )
    assert (diff.added, diff.removed) == (1, 1)


def test_diff_within_a_budget_says_what_it_left_out() -> None:
    """A diff that is too long keeps whole lines from its start, and counts the rest."""
    before, after = RenderedView(text=numbered(50)), RenderedView(text=numbered(50, start=100))
    text = diff_text(before, after, 20, words)
    assert words(text) <= 20
    assert text.splitlines()[0] == "@@ -0,50 +0,50 @@"
    assert text.splitlines()[-1] == "... 89 more diff lines"


def test_level_3_shows_the_diff_to_what_was_last_shown(job: Job) -> None:
    """Two changes between two projections are one diff, from what the model saw to what is now."""
    foo = job.view("a.txt", lod=3, freq="Sync")
    assert job.get(foo, "text") == numbered(8)
    job.graph.take_deltas()
    change(job, "line1", "first")
    job.tick()
    change(job, "line6", "second")
    job.on(foo, "Refresh")
    assert job.get(foo, "text").splitlines() == [
        *("@@ -0,8 +0,8 @@", " line0", "-line1", "+first", " line2", " line3", " line4", " line5"),
        *("-line6", "+second", " line7"),
    ]


def test_level_3_stays_as_it_is_until_the_next_change(job: Job) -> None:
    """Being shown does not change the text of a diff: the prompt's prefix stays the same."""
    foo = job.view("a.txt", lod=3, freq="Sync")
    job.graph.take_deltas()
    change(job, "line1", "first")
    job.tick()
    first = job.graph.render(foo)
    job.graph.take_deltas()
    job.tick()
    assert job.graph.render(foo) == first
    change(job, "line7", "last")
    job.tick()
    assert "line1" not in job.graph.render(foo)
    assert "-line7\n+last" in job.graph.render(foo)


def test_setting_level_3_compares_with_what_is_shown_and_reads_nothing(job: Job) -> None:
    """A view that the model has seen shows, at level 3, that nothing has changed since."""
    foo = job.view("a.txt")
    job.graph.take_deltas()
    job.on(foo, "SetLod", 3)
    assert job.get(foo, "text") == "(no change since it was last shown)"
    assert job.tick() == []
    job.on(foo, "SetLod", 0)
    assert (job.tick(), job.get(foo, "text")) == ([], numbered(8))


def test_level_3_follows_the_view(job: Job) -> None:
    """A view at level 3 that is moved shows which lines came and which went."""
    foo = job.view("a.txt", lod=3, tokens=ALL_TOKENS)
    job.graph.take_deltas()
    job.on(foo, "Scroll", 1)
    job.tick()
    assert job.get(foo, "text") == "@@ -0,3 +1,2 @@\n-line0\n line1\n line2"


def test_show_at_level_3_needs_no_read(job: Job) -> None:
    """``show(foo, lod=3)`` compares what is there."""
    foo = job.view("a.txt", freq="Sync")
    job.graph.take_deltas()
    change(job, "line1", "first")
    job.tick()
    job.reads.clear()
    shown = job.call("show", NodeRef(foo), lod=3)
    assert shown.value.splitlines()[0] == "[view-1: view of a.txt lines 0:8 of 8, lod 3, 9 tokens]"
    assert "-line1\n+first" in shown.value
    assert job.reads == []
