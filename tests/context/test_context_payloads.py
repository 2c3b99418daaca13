"""Async updates: prepared in the background, applied at a tick if their basis still is the
node's.
"""

from __future__ import annotations

import json

import pytest
from context_memory import Job, words

from runtime.base.digests import digest_of
from runtime.context.graph import ContextGraph
from runtime.context.payloads import PayloadKind, ReadyQueue, UpdatePayload
from runtime.history.events import AsyncPayloadApplied, AsyncPayloadPrepared, NodeChanged


@pytest.fixture
def job() -> Job:
    return Job({"a.txt": "one", "b.txt": "one"})


def test_nothing_changes_between_the_end_of_a_preparation_and_the_tick(job: Job) -> None:
    """The payload waits; the tick applies it before it reads anything, and leaves the three events
    of it.
    """
    foo = job.view("a.txt", freq="Async")
    assert job.tick() == []
    (preparation,) = job.begin().values()
    job.files["a.txt"] = "two"
    job.graph.take_events(lambda: "e")
    job.prepared(preparation)
    assert job.get(foo, "text") == "one"
    job.tick()
    assert job.get(foo, "text") == "two"
    prepared, changed, applied = job.graph.take_events(lambda: "e")
    assert isinstance(prepared, AsyncPayloadPrepared)
    assert isinstance(changed, NodeChanged)
    assert isinstance(applied, AsyncPayloadApplied)
    assert prepared.payload_meta == applied.payload_meta
    assert applied.delta == "its source changed, +1 -1 lines of those shown"
    assert applied.payload_meta["payload_id"] == "payload-1"
    assert set(applied.payload_meta) == {
        *("payload_id", "prepared_at", "basis", "kind", "cost", "payload_hash", "source"),
    }
    assert set(applied.payload_meta["basis"]) == {"obj_digest", "policy_hash", "deps_hash"}


def test_a_basis_names_the_version_that_is_read(job: Job) -> None:
    """Of the job's own workspace, and of no page or other job; another version of the rest of the
    files does not make the payload stale.
    """
    job.files["https://a.example/b"] = "page"
    foo, far = job.view("a.txt", freq="Async"), job.view("https://a.example/b", freq="Async")
    job.tick()
    begun = {p.obj_id: p for p in job.graph.background.begin(turn=job.turn, now=1.0, version="v1")}
    assert (begun[foo].basis.version, begun[far].basis.version) == ("v1", "")
    job.files |= {"a.txt": "two", "https://a.example/b": "other"}
    job.graph.take_events(lambda: "e")
    for preparation in begun.values():
        job.prepared(preparation)
    assert job.graph.background.cancel() == ()
    job.tick()
    assert job.get(foo, "text") == "two"
    told = [e for e in job.graph.take_events(lambda: "e") if isinstance(e, AsyncPayloadApplied)]
    assert [event.payload_meta["basis"].get("version") for event in told] == ["v1", None]


@pytest.mark.parametrize(
    ("method", "args"),
    [("Pause", ()), ("SetTokens", (5,)), ("SetPos", (1,)), ("Run", ("Sync",)), ("SetLod", (1,))],
)
def test_a_preparation_is_cancelled_when_its_node_moves_on(
    job: Job, method: str, args: tuple[object, ...]
) -> None:
    """Paused or changed: what would come of it could not be applied."""
    foo = job.view("a.txt", freq="Async")
    job.tick()
    (preparation,) = job.begin().values()
    assert job.graph.background.cancel() == ()
    job.on(foo, method, *args)
    assert job.graph.background.cancel() == (preparation.payload_id,)
    job.prepared(preparation)
    job.tick()
    assert job.graph.background.tally.applied == job.graph.background.tally.stale == 0


def test_a_payload_whose_node_moved_on_is_dropped_and_counted(job: Job) -> None:
    """Its basis is no longer the node's; the next preparation starts from what is."""
    foo = job.view("a.txt", freq="Async")
    job.tick()
    (preparation,) = job.begin().values()
    job.files["a.txt"] = "two"
    job.prepared(preparation)
    job.on(foo, "SetTokens", 7)
    job.files["a.txt"] = "three"
    job.tick()
    assert job.get(foo, "text") == "three"  # its new budget had it read at the tick
    assert job.graph.background.tally.stale == 1
    assert list(job.begin()) == [foo]


def test_a_preparation_that_fails_is_begun_again(job: Job) -> None:
    """And counted."""
    foo = job.view("a.txt", freq="Async")
    job.tick()
    (first,) = job.begin().values()
    assert job.begin() == {}
    job.graph.background.failed(first.payload_id, job.now)
    job.tick()
    assert [p.payload_id for p in job.begin().values()] == ["payload-2"]
    assert job.graph.background.tally.failed == 1
    assert job.get(foo, "text") == "one"


def test_a_source_that_cannot_be_read_any_more_is_told(job: Job) -> None:
    """An error is a reading like any other: the view keeps its last known state."""
    foo = job.view("a.txt", freq="Async")
    job.tick()
    (preparation,) = job.begin().values()
    del job.files["a.txt"]
    job.prepared(preparation)
    job.tick()
    assert job.get(foo, "fault") == "FileNotFoundError: no such file: a.txt"
    assert job.get(foo, "text") == "one"


def test_the_queue_survives_a_checkpoint(job: Job) -> None:
    """Payloads that wait are in it; preparations that run are begun anew."""
    foo, bar = job.view("a.txt", freq="Async"), job.view("b.txt", freq="Async")
    job.tick()
    preparations = job.begin()
    job.files |= {"a.txt": "two", "b.txt": "two"}
    job.prepared(preparations[foo])
    other = Job(
        job.files,
        ContextGraph.load(json.loads(json.dumps(job.graph.dump())), words),
        job.turn,
        job.now,
    )
    other.tick()
    assert [other.get(node, "text") for node in (foo, bar)] == ["two", "one"]
    assert {p.obj_id: p.payload_id for p in other.begin().values()} == {
        foo: "payload-4",
        bar: "payload-3",
    }


def payload(
    number: int, node: str, kind: PayloadKind = PayloadKind.RENDER, digest: str = "d"
) -> UpdatePayload:
    """A payload with nothing in it."""
    basis = {"obj_digest": digest, "policy_hash": "", "deps_hash": ""}
    return UpdatePayload.model_validate(
        {
            "payload_id": f"payload-{number}",
            "obj_id": node,
            "prepared_at": 0.0,
            "basis": basis,
            "kind": kind,
            "data": {},
            "cost": {},
            "payload_hash": digest_of(number),
            "source": (0, 0),
        }
    )


def test_the_newest_of_a_key_is_applied_in_the_place_of_the_oldest() -> None:
    """Another kind for the same node is another key; a stale one does not supersede one that could
    be applied.
    """
    queue = ReadyQueue(per_turn=9)
    queue.waiting = [
        payload(1, "a"),
        payload(2, "b"),
        payload(3, "a", PayloadKind.PARSE),
        payload(4, "a"),
        payload(5, "b", digest="old"),
    ]
    applied: list[str] = []
    queue.take(lambda p: p.basis.obj_digest == "d", lambda p: applied.append(p.payload_id))
    assert applied == ["payload-4", "payload-2", "payload-3"]
    assert (queue.tally.applied, queue.tally.stale, queue.tally.superseded) == (3, 1, 1)


def test_what_one_payload_makes_stale_is_not_applied_after_it() -> None:
    """The basis is checked again when a payload's turn has come, and a drop does not use up the
    cap.
    """
    queue = ReadyQueue(per_turn=2)
    queue.waiting = [
        payload(1, "a"),
        payload(2, "a", PayloadKind.PARSE),
        payload(3, "b"),
        payload(4, "c"),
    ]
    applied: list[str] = []
    queue.take(lambda p: p.obj_id not in applied, lambda p: applied.append(p.obj_id))
    assert applied == ["a", "b"]
    assert [p.payload_id for p in queue.waiting] == ["payload-4"]
    assert (queue.tally.applied, queue.tally.stale) == (2, 1)
