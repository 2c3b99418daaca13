"""Going back: snapshots for a statement that is taken back, checkpoints for a run that goes on
elsewhere.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from context_memory import Job, numbered, words

from runtime.base.errors import InputError
from runtime.context.graph import ContextGraph


@pytest.fixture
def job() -> Job:
    job = Job({"a.txt": numbered(6), "b.txt": numbered(6)})
    foo = job.view("a.txt", freq="Sync")
    job.group(foo, job.view("b.txt", lod=3))
    job.graph.learn_names({"foo": foo})
    job.files["a.txt"] = "new"
    job.tick()
    return job


def test_checkpoint_is_the_whole_graph(job: Job) -> None:
    """A graph that was dumped and loaded goes on exactly as the one it was dumped from."""
    other = Job(
        job.files,
        ContextGraph.load(json.loads(json.dumps(job.graph.dump())), words),
        job.turn,
        job.now,
    )
    assert other.graph.dump() == job.graph.dump()
    for one in (job, other):
        one.files["a.txt"] = "newer"
        one.view("b.txt")
        one.tick()
    assert other.graph.dump() == job.graph.dump()
    assert other.feed() == job.feed()
    assert [other.graph.render(i) for i in other.graph.obj_ids] == [
        job.graph.render(i) for i in job.graph.obj_ids
    ]


def _as_new(part: Any, new: Any) -> set[str]:
    """The attributes that are not declared as made anew, and are as in a new one all the same."""
    assert set(vars(part)) >= part.MADE_ANEW, "what is declared is there"
    kept = set(vars(part)) - part.MADE_ANEW
    return {name for name in kept if getattr(part, name) == getattr(new, name)}


def test_every_attribute_of_a_graph_is_saved_or_made_anew() -> None:
    """A new attribute must be put into the checkpoint, or declared as made anew; and into the
    snapshot of a statement, if one may change it.
    """
    job = Job({"a.txt": numbered(6), "b.txt": numbered(6)}, ContextGraph(words, writer=True))
    foo = job.view("a.txt", freq="Async")
    group = job.group(foo, job.view("b.txt"), tokens=100)
    job.graph.learn_names({"foo": foo, "g": group})
    job.graph.pause_out_of_sight(turn=job.turn)
    job.tick()
    preparations = job.begin()
    job.prepared(preparations[foo])
    job.graph.background.failed(preparations[group].payload_id, job.now)
    job.feed()
    job.on(foo, "SetLod", 1)
    job.feed()
    job.graph.changed_states()
    job.on(foo, "SetLod", 0)
    job.call("wait", 60)
    graph, new = job.graph, ContextGraph(words, writer=True)
    assert set(vars(graph)) - graph.MADE_ANEW == {"_store", "background"}
    assert _as_new(graph._store, new._store) | _as_new(graph.background, new.background) == set()

    loaded = ContextGraph.load(json.loads(json.dumps(graph.dump())), words, writer=True)
    assert _as_new(loaded._store, new._store) == set()
    assert _as_new(loaded.background, new.background) == set()

    taken_back = ContextGraph(words, writer=True)
    taken_back.restore(graph.snapshot())
    assert _as_new(taken_back._store, new._store) == {"held"}, "set when a statement has ended well"


def test_checkpoint_of_another_version_is_refused(job: Job) -> None:
    """A version that this release does not know is an error that names it; so is damage."""
    data = job.graph.dump()
    with pytest.raises(InputError, match="version 2"):
        ContextGraph.load(data | {"version": 2}, words)
    with pytest.raises(InputError, match="damaged"):
        ContextGraph.load(data | {"nodes": [{"obj_type": "view"}]}, words)


def test_restore_takes_a_statement_back_whole(job: Job) -> None:
    """Nodes, ids, names, events and the feed are as they were."""
    before, snapshot = job.graph.dump(), job.graph.snapshot()
    foo = job.view("a.txt")
    job.on(foo, "SetLod", 1)
    job.group(foo)
    job.graph.learn_names({"x": foo})
    job.graph.take_deltas()
    job.graph.changed_states()
    job.graph.restore(snapshot)
    assert job.graph.dump() == before
    assert job.view("a.txt") == foo


def test_a_snapshot_can_be_restored_again(job: Job) -> None:
    """What happens after a restore leaves the snapshot alone."""
    before, snapshot = job.graph.dump(), job.graph.snapshot()
    for _ in range(2):
        job.view("b.txt")
        job.graph.take_events(lambda: "e")
        job.graph.restore(snapshot)
        assert job.graph.dump() == before
