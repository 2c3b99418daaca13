"""What leaves the graph: the delta feed, the handle table, events and records."""

from __future__ import annotations

import pytest
from context_memory import Job, numbered, words

from runtime.base.fences import fenced, unfenced
from runtime.context.outcomes import NodeRef
from runtime.history.events import MethodCalled, NodeChanged, TickApplied


@pytest.fixture
def job() -> Job:
    return Job({"a.txt": numbered(6), "b.txt": numbered(6)})


def ids() -> object:
    numbers = iter(range(1000))
    return lambda: f"e{next(numbers)}"


def test_changed_source_is_a_delta_with_its_diff(job: Job) -> None:
    """A sync tick that finds a change tells it in a line, with the diff to what was shown below."""
    foo = job.view("a.txt", freq="Sync")
    job.graph.learn_names({"foo": foo})
    job.graph.take_deltas()
    job.files["a.txt"] = numbered(6).replace("line2", "new")
    job.tick()
    (delta,) = job.graph.take_deltas()
    assert delta.text() == (
        "foo: its source changed, +1 -1 lines of those shown\n"
        + fenced("@@ -0,5 +0,5 @@\n line0\n line1\n-line2\n+new\n line3\n line4")
    )
    assert job.graph.take_deltas() == ()


def test_changes_coalesce(job: Job) -> None:
    """All that happened to a node since the last projection is one delta; what was undone is
    none.
    """
    foo = job.view("a.txt", tokens=6)
    bar = job.view("b.txt")
    job.graph.take_deltas()
    job.on(foo, "SetPos", 1)
    job.tick()
    job.on(foo, "SetTokens", 3)
    job.on(foo, "Run")
    job.on(bar, "SetLod", 1)
    job.on(bar, "SetLod", 0)
    job.tick()
    assert job.feed() == ["view-1: now at 1:0; tokens 6 to 3; now running Sync"]


def test_a_change_outside_the_lines_shown_is_told_as_such(job: Job) -> None:
    """The model learns that the file moved on, and that what it sees did not."""
    job.view("a.txt", tokens=2, freq="Sync")
    job.graph.take_deltas()
    job.files["a.txt"] += "\nmore"
    job.tick()
    assert job.feed() == ["view-1: its source changed outside the lines shown (6 to 7 lines)"]


def test_new_nodes_are_no_deltas(job: Job) -> None:
    """What the statement made stands where the statement stands."""
    job.group(job.view("a.txt"))
    assert job.feed() == []


def test_group_delta_names_the_members_that_changed(job: Job) -> None:
    """A recomputed summary says whose change it was."""
    foo = job.view("a.txt", freq="Sync")
    s = job.group(foo, job.view("b.txt"))
    job.graph.learn_names({"foo": foo, "s": s})
    job.tick()
    job.graph.take_deltas()
    job.files["a.txt"] = "new"
    job.tick()
    assert job.feed()[1:] == ["s: summary recomputed (foo changed)"]


def test_handle_table(job: Job) -> None:
    """One compact line a handle; names that share a node share a line; a lost node is listed while
    it runs or is pinned.
    """
    foo = job.view("a.txt", tokens=4)
    lost = job.view("b.txt")
    job.view("b.txt", pos=2, freq="Sync")
    s = job.group(foo, tokens=1500)
    job.call("pin", NodeRef(s), reason="the plan")
    job.graph.take_deltas()
    names = {"foo": foo, "again": foo, "s": s}
    job.on(foo, "SetLod", 1)
    assert job.graph.handle_table(names).lines == (
        "foo, again = view a.txt@0:0 | paused | lod 1 | 4/4 tokens | due | changed",
        "view-3 = view b.txt@2:0 | running Sync | lod 0 | 4/2,000 tokens",
        "s = group 1 members | running Sync | lod 2 | 10/1,500 tokens | pinned",
    )
    assert lost not in job.graph.handle_table(names).text


def test_changed_flag_lasts_for_one_projection(job: Job) -> None:
    """The table marks what the feed of the same projection named, and no longer than that."""
    foo = job.view("a.txt", freq="Sync")
    job.graph.take_deltas()
    job.files["a.txt"] = "new"
    flags: list[bool] = []
    for _ in range(2):
        job.tick()
        job.graph.take_deltas()
        flags.append("changed" in job.graph.handle_table({"foo": foo}).text)
    assert flags == [True, False]


def test_ls_lists_every_handle_by_its_name(job: Job) -> None:
    """``ls()`` is the table as a list, of all nodes."""
    foo = job.view("a.txt")
    job.graph.learn_names({"foo": foo})
    job.view("b.txt")
    assert job.call("ls").value == [
        "foo = view a.txt@0:0 | paused | lod 0 | 6/2,000 tokens",
        "view-2 = view b.txt@0:0 | paused | lod 0 | 6/2,000 tokens",
    ]


def test_events_of_calls_and_ticks(job: Job) -> None:
    """A call is recorded with the digests before and after, then the change it made; a tick's
    change is its own event.
    """
    foo = job.view("a.txt", freq="Sync")
    made = job.graph.digest(foo)
    job.on(foo, "set_lod", 1)
    after = job.graph.digest(foo)
    job.on(foo, "GetDigest")
    job.files["a.txt"] = "def f"
    job.tick()
    method = {"turn": 1, "obj_id": foo, "obj_type": "view"}
    assert list(job.graph.take_events(ids())) == [
        MethodCalled(
            **method,
            id="e0",
            method="view",
            args=("'a.txt'",),
            kwargs={"freq": "'Sync'"},
            before_digest="",
            after_digest=made,
        ),
        NodeChanged(id="e1", turn=1, obj_id=foo, delta="created view"),
        MethodCalled(
            **method, id="e2", method="SetLod", args=("1",), before_digest=made, after_digest=after
        ),
        NodeChanged(id="e3", turn=1, obj_id=foo, delta="lod 0 to 1"),
        MethodCalled(
            **method, id="e4", method="GetDigest", before_digest=after, after_digest=after
        ),
        TickApplied(id="e5", turn=2, obj_id=foo, tick_kind="sync", delta="its source changed"),
    ]
    assert job.graph.take_events(ids()) == ()


def test_long_arguments_are_capped_in_events(job: Job) -> None:
    """An event holds a short repr, whatever the model passes."""
    foo = job.view("a.txt")
    job.graph.take_events(ids())
    job.call("pin", NodeRef(foo), reason="x" * 5000)
    called, _ = job.graph.take_events(ids())
    assert called.args == (foo,)
    assert len(called.kwargs["reason"]) == 120


def test_records_hold_what_changed_since_the_last_record(job: Job) -> None:
    """The archive gets each state once; texts are not in it, digests are."""
    foo, bar = job.view("a.txt"), job.view("b.txt")
    first = job.graph.changed_states()
    assert [record["obj_id"] for record in first] == [foo, bar]
    assert first[0]["digest"] == job.graph.digest(foo)
    assert "line0" not in str(first)
    job.on(bar, "Pause")
    assert job.graph.changed_states() == ()
    job.on(bar, "SetTokens", 5)
    assert [record["obj_id"] for record in job.graph.changed_states()] == [bar]


def test_render_cuts_by_whole_lines(job: Job) -> None:
    """A projection that has less room than the node's budget says how many lines it left out."""
    foo = job.view("a.txt")
    text = job.graph.render(foo, tokens=5)
    assert text == "[view-1: view of a.txt lines 0:6 of 6, lod 0, 5 tokens]\n" + fenced(
        "line0\n... 5 more lines"
    )
    assert words(unfenced(text.partition("\n")[2])) == 5
