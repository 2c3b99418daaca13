"""Notes: the model's own text, always whole, pinned from the start."""

from __future__ import annotations

import pytest
from context_memory import Job, node_of, raised

from runtime.base.fences import fenced
from runtime.context.outcomes import NodeRef


@pytest.fixture
def job() -> Job:
    return Job({"a.txt": "one\ntwo"})


def test_a_note_is_shown_as_it_was_written(job: Job) -> None:
    """Its text stands under a header; it is pinned, and it is never stale."""
    note = node_of(job.call("note", "first find the bug\nthen fix it"))
    assert job.graph.render(note) == "[note-1: note, 7 tokens]\n" + fenced(
        "first find the bug\nthen fix it"
    )
    assert [job.get(note, name) for name in ("pinned", "tokens", "mode", "dirty", "obj_type")] == [
        "note",
        500,
        "paused",
        False,
        "note",
    ]
    assert job.tick() == []


def test_a_note_is_rewritten_and_appended_to(job: Job) -> None:
    """The delta feed says that it changed, and not what: it is in the prompt anyway."""
    note = node_of(job.call("note", "one"))
    job.feed()
    job.on(note, "Append", "two")
    assert job.get(note, "text") == "one\ntwo"
    job.on(note, "SetText", "three")
    assert job.get(note, "text") == "three"
    assert job.feed() == ["note-1: written anew"]


def test_a_note_beyond_its_budget_is_refused(job: Job) -> None:
    """Nothing is cut: the call says how long the text is and what the budget allows, and the note
    stays as it was.
    """
    assert (
        raised(job.call("note", "a b c", tokens=2)).message
        == "note: the text has 3 tokens, and the note's budget is 2; shorten it or give it more"
        " tokens"
    )
    note = node_of(job.call("note", "a b", tokens=2))
    assert raised(job.on(note, "Append", "c")).message.startswith("Append: the text has 3 tokens")
    assert raised(job.on(note, "SetTokens", 1)).message.startswith(
        "SetTokens: the text has 2 tokens"
    )
    assert job.get(note, "text") == "a b"
    job.on(note, "SetTokens", -1)
    job.on(note, "Append", "c " * 900)
    assert (
        raised(job.on(note, "SetText", "x" * 100_001)).message
        == "SetText: a note has at most 100,000 characters, not 100,001"
    )


def test_a_note_has_no_source_and_no_levels(job: Job) -> None:
    """What only views and groups can do is unknown to it."""
    note = node_of(job.call("note", "a"))
    assert (
        raised(job.on(note, "Run")).message
        == "'NoteHandle' object has no attribute 'Run'; its methods are SetText, Append, SetTokens,"
        " Render, GetDigest"
    )
    assert raised(job.call("show", NodeRef(note), lod=1)).type == "ValueError"


def test_a_group_may_hold_notes(job: Job) -> None:
    """A note is a member like any other: its change has the group recomputed."""
    note, foo = node_of(job.call("note", "one")), job.view("a.txt")
    group = job.group(foo, note)
    assert job.get(group, "text").splitlines() == [
        "view-2 (view-2): a.txt lines 0:2 of 2",
        "  one",
        "  two",
        "note-1 (note-1): note [pinned]",
        "  one",
    ]
    job.on(note, "SetText", "other")
    job.tick()
    assert job.get(group, "text").splitlines()[-1] == "  other"
