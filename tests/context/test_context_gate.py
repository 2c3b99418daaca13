"""No background work changes a node: the one gate through which nodes change is open in calls and
ticks alone.

The whole test suite runs under it; here are the ways around it that are shut.
"""

from __future__ import annotations

import threading

import pytest
from context_memory import Job

from runtime.context.store import Cause


@pytest.fixture
def job() -> Job:
    return Job({"a.txt": "one"})


def test_states_cannot_be_put_in_place(job: Job) -> None:
    """The mapping of nodes is for looking, and states are frozen."""
    foo = job.view("a.txt")
    store = job.graph._store
    with pytest.raises(TypeError):
        store.nodes[foo] = store.nodes[foo].evolve(tokens=1)  # type: ignore[index]
    with pytest.raises(ValueError, match="frozen"):
        store.nodes[foo].tokens = 1  # type: ignore[misc]
    with pytest.raises(RuntimeError, match="only during a call or a tick"):
        store.add(store.nodes[foo].evolve(obj_id="view-9"))
    assert job.get(foo, "tokens") == 2000


def test_another_thread_cannot_use_an_open_gate(job: Job) -> None:
    """A gate that a call has opened is that call's."""
    foo = job.view("a.txt")
    store = job.graph._store
    caught: list[str] = []

    def sneak() -> None:
        try:
            store.put(store.nodes[foo].evolve(tokens=1), Cause.TICK)
        except RuntimeError as error:
            caught.append(str(error))

    with store.open(2):
        thread = threading.Thread(target=sneak)
        thread.start()
        thread.join()
    assert caught == ["nodes change only during a call or a tick"]
    assert job.get(foo, "tokens") == 2000


def test_the_end_of_a_preparation_changes_nothing(job: Job) -> None:
    """Neither the nodes nor the events; only the tick does."""
    job.view("a.txt", freq="Async")
    job.tick()
    (preparation,) = job.begin().values()
    job.files["a.txt"] = "two"
    before = {obj_id: job.graph.digest(obj_id) for obj_id in job.graph.obj_ids}
    job.graph.take_events(lambda: "e")
    job.prepared(preparation)
    assert {obj_id: job.graph.digest(obj_id) for obj_id in job.graph.obj_ids} == before
    assert job.graph.take_events(lambda: "e") == ()
