"""Ticks: what is read, in which order, how often, and what a reading changes."""

from __future__ import annotations

import pytest
from context_memory import Job, numbered, read

from runtime.context.outcomes import NodeRef, Returned


@pytest.fixture
def job() -> Job:
    return Job({"a.txt": numbered(3), "b.txt": numbered(3), "c.txt": numbered(3)})


def test_due_reads_are_dirty_and_running_views_in_creation_order(job: Job) -> None:
    """Paused views are read only if they were set to show something else."""
    a, b, c = job.view("a.txt"), job.view("b.txt"), job.view("c.txt")
    job.on(c, "Run")
    job.on(a, "SetPos", 1)
    assert job.tick() == [a, c]
    assert job.tick() == [c]
    assert b not in job.reads[3:]


def test_sync_tick_shows_the_change(job: Job) -> None:
    """A running view shows its file as it is at the tick; a paused one shows its last known
    state.
    """
    running, paused = job.view("a.txt", freq="Sync"), job.view("b.txt")
    job.files["a.txt"] = job.files["b.txt"] = "new"
    job.tick()
    assert (job.get(running, "text"), job.get(paused, "text")) == ("new", "line0\nline1\nline2")


def test_pause_stops_the_ticks(job: Job) -> None:
    """After ``Pause`` a view is not read any more."""
    foo = job.view("a.txt", freq="Sync")
    assert job.tick() == [foo]
    job.on(foo, "Pause")
    assert job.tick() == []


def test_throttle(job: Job) -> None:
    """``min_turn_interval`` turns pass between two sync ticks; an explicit change does not wait for
    them.
    """
    foo = job.view("a.txt")
    job.on(foo, "Run", freq="Sync", min_turn_interval=3)
    assert [bool(job.tick()) for _ in range(7)] == [True, False, False, True, False, False, True]
    job.on(foo, "SetPos", 2)
    assert job.tick() == [foo]


def test_unchanged_source_changes_nothing(job: Job) -> None:
    """A tick that finds nothing new leaves digest, events, feed and records as they were."""
    foo = job.view("a.txt", freq="Sync")
    job.tick()
    job.graph.take_events(lambda: "e")
    job.graph.take_deltas()
    job.graph.changed_states()
    before = job.graph.digest(foo)
    job.tick()
    assert job.graph.digest(foo) == before
    assert job.graph.take_events(lambda: "e") == ()
    assert job.graph.take_deltas() == ()
    assert job.graph.changed_states() == ()
    assert job.get(foo, "last_tick_turn") == job.turn


def test_vanished_source_is_told_once(job: Job) -> None:
    """A running view keeps its last text; the feed says so when it vanishes and when it is back,
    not in between.
    """
    job.view("a.txt", freq="Sync")
    job.graph.take_deltas()
    content = job.files.pop("a.txt")
    told: list[list[str]] = []
    for turn in range(4):
        if turn == 2:
            job.files["a.txt"] = content
        job.tick()
        told.append(job.feed())
    assert told == [
        [
            "view-1: unreadable (FileNotFoundError: no such file: a.txt); still shows its last"
            " known state"
        ],
        [],
        ["view-1: readable again"],
        [],
    ]
    assert job.get("view-1", "text") == content


def test_a_paused_view_that_cannot_be_read_is_not_read_again(job: Job) -> None:
    """An explicit change whose read fails is tried once; the model decides whether to try again."""
    foo = job.view("a.txt")
    del job.files["a.txt"]
    job.on(foo, "SetPos", 2)
    assert job.tick() == [foo]
    assert job.tick() == []


def test_a_reading_of_one_view_marks_the_others_of_its_file(job: Job) -> None:
    """A paused view of a file that another view found changed is marked, not read; reading it takes
    the mark off.
    """
    paused, _ = job.view("a.txt"), job.view("a.txt", freq="Sync")
    job.graph.take_deltas()
    job.files["a.txt"] = "new"
    job.tick()
    assert job.get(paused, "text") == "line0\nline1\nline2"
    assert "source changed since; Refresh() shows it" in job.graph.render(paused).splitlines()[0]
    assert job.feed()[0] == "view-1: its source has changed since; Refresh() shows it"
    assert job.tick() == ["view-2"]
    job.on(paused, "Refresh")
    assert job.get(paused, "dirty") is False


def test_reading_that_nobody_asked_for_is_refused(job: Job) -> None:
    """A tick takes each reading once, and only those that it asked for."""
    job.view("a.txt")
    foo = job.view("b.txt", freq="Sync")
    (request,) = job.graph.due_reads(turn=2, now=0.0)
    result = read(job.files, request)
    with pytest.raises(ValueError, match="did not ask for"):
        job.graph.apply_tick([result, result], turn=2, now=0.0)
    with pytest.raises(ValueError, match="view-1"):
        job.graph.apply_tick([result.model_copy(update={"obj_id": "view-1"})], turn=2, now=0.0)
    assert job.get(foo, "last_tick_turn") == -1


def test_missing_reading_leaves_the_view_due(job: Job) -> None:
    """A view whose reading did not come is read at the next tick."""
    foo = job.view("a.txt")
    job.on(foo, "SetPos", 1)
    job.graph.apply_tick([], turn=2, now=0.0)
    assert [request.obj_id for request in job.graph.due_reads(turn=3, now=0.0)] == [foo]


def test_tick_call_lifts_the_throttle(job: Job) -> None:
    """``tick()`` in a statement recomputes groups at once if nothing has to be read, and makes all
    that runs due.
    """
    foo = job.view("a.txt")
    job.on(foo, "Run", min_turn_interval=10)
    job.tick()
    group = job.group(foo)
    job.on(group, "SetLod", 0)
    assert job.call("tick") == Returned(None)
    assert (job.get(group, "dirty"), job.get(group, "text")) == (
        False,
        "view-1 (view-1): a.txt lines 0:3 of 3\n  line0\n  line1\n  line2",
    )
    assert job.tick() == [foo]


def test_tick_call_leaves_groups_to_the_next_tick_when_something_must_be_read(job: Job) -> None:
    """A group must not be summarised from a member that is about to change."""
    foo = job.view("a.txt")
    group = job.group(foo)
    job.on(foo, "SetPos", 1)
    job.on(group, "SetLod", 0)
    job.call("tick")
    assert job.get(group, "dirty") is True
    job.tick()
    assert job.get(group, "text") == "view-1 (view-1): a.txt lines 1:3 of 3\n  line1\n  line2"


def test_nodes_do_not_change_outside_calls_and_ticks(job: Job) -> None:
    """The store's gate is shut outside a call and a tick (docs/contract/executable-context.md
    section 1.5).
    """
    foo = job.view("a.txt")
    store = job.graph._store
    from runtime.context.store import Cause

    with pytest.raises(RuntimeError, match="only during a call or a tick"):
        store.put(store.nodes[foo].evolve(tokens=1), Cause.TICK)
    assert job.get(foo, "tokens") == 2000
    assert job.call("pin", NodeRef(foo)) == Returned(None)
